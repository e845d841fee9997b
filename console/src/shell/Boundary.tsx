import { Component, type ComponentChildren } from "preact";
import { Button } from "../parts";

interface State {
  thrown: unknown;
}

/** Shows an error of a page in its place; the rest of the console keeps working. */
export class Boundary extends Component<{ children: ComponentChildren }, State> {
  override state: State = { thrown: null };

  override componentDidCatch(thrown: unknown): void {
    console.error(thrown);
    this.setState({ thrown });
  }

  override render() {
    if (this.state.thrown === null) return this.props.children;
    const text = this.state.thrown instanceof Error ? this.state.thrown.message : String(this.state.thrown);
    return (
      <div class="failure" role="alert">
        <p>
          <strong>This page cannot be shown.</strong> {text}
        </p>
        <Button kind="primary" icon="refresh" onClick={() => location.reload()}>
          Load again
        </Button>
      </div>
    );
  }
}
