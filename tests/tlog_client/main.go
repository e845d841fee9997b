// Checks a checkpoint, tiles and proofs with the packages of Go's own checksum database, which know nothing of this product.
//
// Reads one JSON object from the standard input; writes "accepted", or says what is wrong and ends with 1.
package main

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

type given struct {
	Base    string   // address of the log
	Header  string   // API-KEY
	Keys    []string // verifier keys
	Old     string   // an older checkpoint
	Records map[int64]struct {
		Leaf string   // of the commit
		Path []string // from the log's own proof
	}
	Consistency []string
}

type tree struct {
	size int64
	root tlog.Hash
}

type tiles struct{ given given }

func (tiles) Height() int { return 8 }

func (t tiles) ReadTiles(wanted []tlog.Tile) ([][]byte, error) {
	var found [][]byte
	for _, tile := range wanted {
		path := strings.Replace(tile.Path(), "tile/8/", "tile/", 1) // tlog-tiles does not name the height
		body, err := t.given.get(path)
		if err != nil {
			return nil, err
		}
		found = append(found, body)
	}
	return found, nil
}

func (tiles) SaveTiles([]tlog.Tile, [][]byte) {}

func (g given) get(path string) ([]byte, error) {
	request, err := http.NewRequest("GET", g.Base+path, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("API-KEY", g.Header)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != 200 {
		return nil, fmt.Errorf("%s: status %d", path, answer.StatusCode)
	}
	return io.ReadAll(answer.Body)
}

func (g given) opened(text string) (tree, error) {
	var verifiers []note.Verifier
	for _, key := range g.Keys {
		verifier, err := note.NewVerifier(key)
		if err != nil {
			return tree{}, err
		}
		verifiers = append(verifiers, verifier)
	}
	opened, err := note.Open([]byte(text), note.VerifierList(verifiers...))
	if err != nil {
		return tree{}, err
	}
	lines := strings.Split(opened.Text, "\n")
	if lines[0] != opened.Sigs[0].Name {
		return tree{}, fmt.Errorf("the origin is not the name of the key")
	}
	size, err := strconv.ParseInt(lines[1], 10, 64)
	if err != nil {
		return tree{}, err
	}
	root, err := base64.StdEncoding.DecodeString(lines[2])
	if err != nil || len(root) != tlog.HashSize {
		return tree{}, fmt.Errorf("there is no root")
	}
	return tree{size, tlog.Hash(root)}, nil
}

func hashes(texts []string) ([]tlog.Hash, error) {
	var found []tlog.Hash
	for _, text := range texts {
		bytes, err := hex.DecodeString(text)
		if err != nil || len(bytes) != tlog.HashSize {
			return nil, fmt.Errorf("%q is not a hash", text)
		}
		found = append(found, tlog.Hash(bytes))
	}
	return found, nil
}

func (g given) check() error {
	latest, err := g.get("checkpoint")
	if err != nil {
		return err
	}
	newer, err := g.opened(string(latest))
	if err != nil {
		return err
	}
	older, err := g.opened(g.Old)
	if err != nil {
		return err
	}
	reader := tlog.TileHashReader(tlog.Tree{N: newer.size, Hash: newer.root}, tiles{g})
	for number, record := range g.Records {
		leaf, err := hashes([]string{record.Leaf})
		if err != nil {
			return err
		}
		stored, err := reader.ReadHashes([]int64{tlog.StoredHashIndex(0, number)})
		if err != nil {
			return err // among others: the tiles do not give the root of the checkpoint
		}
		if stored[0] != leaf[0] {
			return fmt.Errorf("the tiles have another commit %d", number)
		}
		own, err := hashes(record.Path)
		if err != nil {
			return err
		}
		if err := tlog.CheckRecord(own, newer.size, newer.root, number, leaf[0]); err != nil {
			return fmt.Errorf("commit %d: %w", number, err)
		}
	}
	made, err := tlog.ProveTree(newer.size, older.size, reader)
	if err != nil {
		return err
	}
	if err := tlog.CheckTree(made, newer.size, newer.root, older.size, older.root); err != nil {
		return fmt.Errorf("by the tiles: %w", err)
	}
	own, err := hashes(g.Consistency)
	if err != nil {
		return err
	}
	return tlog.CheckTree(own, newer.size, newer.root, older.size, older.root)
}

func main() {
	var read given
	if err := json.NewDecoder(os.Stdin).Decode(&read); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	if err := read.check(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("accepted")
}
