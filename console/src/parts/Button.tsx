import type { ComponentChildren } from "preact";
import { Icon, type IconName } from "./Icon";

interface ButtonProps {
  children?: ComponentChildren;
  onClick?: () => void;
  /** Default `plain`. One `primary` per view; `danger` for actions that cannot be undone. */
  kind?: "plain" | "primary" | "danger" | "quiet";
  icon?: IconName;
  /** The label for screen readers and the tooltip; required without a text. */
  label?: string;
  type?: "button" | "submit";
  disabled?: boolean;
  busy?: boolean;
  /** The id of the form that a submit button outside of it submits. */
  form?: string;
}

/** A button. While `busy` it accepts no clicks and shows that. */
export function Button({ children, onClick, kind = "plain", icon, label, type = "button", disabled, busy, form }: ButtonProps) {
  return (
    <button
      type={type}
      form={form}
      class={`button ${kind}${children ? "" : " bare"}`}
      onClick={busy ? undefined : onClick}
      disabled={disabled}
      aria-label={label}
      aria-busy={busy || undefined}
      title={label}
    >
      {icon && <Icon name={icon} size={16} />}
      {children}
    </button>
  );
}
