import type { ComponentChildren } from "preact";
import { Icon, type IconName } from "./Icon";

interface ButtonProps {
  children?: ComponentChildren;
  onClick?: () => void;
  /** `plain` unless told. One `primary` in a view; `danger` for what cannot be undone. */
  kind?: "plain" | "primary" | "danger" | "quiet";
  icon?: IconName;
  /** Said to screen readers, and the tooltip; needed where there is no text. */
  label?: string;
  type?: "button" | "submit";
  disabled?: boolean;
  busy?: boolean;
  /** The id of the form that a submit button outside of it sends. */
  form?: string;
}

/** A button. While `busy` it takes no click and says so. */
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
