#!/bin/sh
# The two logins and the database of compose.yaml. The image of PostgreSQL runs it once, when it has made a new data directory.
set -e
psql -v ON_ERROR_STOP=1 -v owner="$OWNER_PASSWORD" -v product="$PRODUCT_PASSWORD" --username "$POSTGRES_USER" <<'SQL'
CREATE ROLE medialedger_owner LOGIN PASSWORD :'owner';
CREATE ROLE medialedger_app NOLOGIN;
CREATE ROLE medialedger LOGIN PASSWORD :'product' IN ROLE medialedger_app;
CREATE DATABASE medialedger OWNER medialedger_owner;
SQL
