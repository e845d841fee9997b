"""`medialedger workflows` of this machine: the built-in workflows and those of installed packages. No database is needed."""

from __future__ import annotations

from argparse import Namespace

from api.cli.output import Document
from api.cli.workflow_list import print_workflow, print_workflows
from api.wiring.settings import Settings
from api.wiring.startup import StartError
from domain.kernel.closest import did_you_mean
from workers.job.registry import installed, summary
from workers.job.workflow import Workflow


async def run(args: Namespace, settings: Settings) -> int:
    registry = installed()
    if args.action == "list":
        print_workflows([_document(registry.named(name)) for name in registry.names], form=args.form)
        return 0
    if args.name not in registry.names:
        raise StartError(f"the workflow {args.name} does not exist{did_you_mean(args.name, registry.names)}")
    print_workflow(_document(registry.named(args.name)), form=args.form)
    return 0


def _document(workflow: Workflow) -> Document:
    schema = workflow.parameters.model_json_schema()
    return {
        "name": workflow.name,
        "description": summary(workflow) or None,
        "parameters": schema,
        "tasks": [{"id": task.id, "name": task.name, "queue": task.queue, "after": list(task.after)} for task in workflow.graph()],
    }
