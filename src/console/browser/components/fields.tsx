/** Fields of forms, each with its label. */
import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';

interface FieldProps {
  readonly label: string;
  readonly name: string;
  readonly hint?: ComponentChildren;
  readonly value?: string;
  readonly required?: boolean;
  readonly autocomplete?: 'off' | 'username' | 'current-password' | 'new-password';
  readonly type?: 'text' | 'password' | 'number' | 'search' | 'datetime-local' | 'email';
  readonly min?: number;
  readonly pattern?: string;
  readonly placeholder?: string;
}

export function TextField({ label, hint, autocomplete = 'off', type = 'text', ...input }: FieldProps) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input
        id={id}
        // The types of Preact do not allow an input whose type is a variable.
        type={type as 'text'}
        autocomplete={autocomplete}
        spellcheck={false}
        aria-describedby={hint === undefined ? undefined : `${id}-hint`}
        {...input}
      />
      {hint !== undefined && (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
    </div>
  );
}

export function TextArea({
  label,
  name,
  required = false,
}: {
  readonly label: string;
  readonly name: string;
  readonly required?: boolean;
}) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <textarea id={id} name={name} rows={5} required={required} />
    </div>
  );
}

export function Checkbox({
  label,
  name,
  hint,
  checked = false,
}: {
  readonly label: string;
  readonly name: string;
  readonly hint?: string;
  readonly checked?: boolean;
}) {
  const id = useId();
  return (
    <div class="choice">
      <input
        id={id}
        type="checkbox"
        name={name}
        defaultChecked={checked}
        aria-describedby={hint === undefined ? undefined : `${id}-hint`}
      />
      <label for={id}>{label}</label>
      {hint !== undefined && (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
    </div>
  );
}

/** A choice that takes effect at once, for the filters of lists. Shows the first option for an unknown value. */
export function Choice({
  label,
  value,
  options,
  onChange,
}: {
  readonly label: string;
  readonly value: string;
  readonly options: readonly (readonly [value: string, text: string])[];
  readonly onChange: (value: string) => void;
}) {
  const id = useId();
  const known = options.some(([option]) => option === value) ? value : options[0]?.[0];
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <select id={id} value={known} onChange={(event) => onChange(event.currentTarget.value)}>
        {options.map(([option, text]) => (
          <option key={option} value={option}>
            {text}
          </option>
        ))}
      </select>
    </div>
  );
}

/** Milliseconds from the last key press to the start of a search. */
const searchDelay = 300;

/** A search that begins while the administrator types. */
export function SearchField({
  label,
  value,
  placeholder,
  onSearch,
}: {
  readonly label: string;
  readonly value: string;
  readonly placeholder?: string;
  readonly onSearch: (text: string) => void;
}) {
  const id = useId();
  const newest = useRef(onSearch);
  newest.current = onSearch;
  const pending = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(() => () => clearTimeout(pending.current), []);
  const search = (text: string) => {
    clearTimeout(pending.current);
    // The administrator may choose a filter meanwhile. The newest function searches with it.
    pending.current = setTimeout(() => newest.current(text), searchDelay);
  };
  return (
    <div class="field search">
      <label for={id}>{label}</label>
      <input
        id={id}
        type="search"
        defaultValue={value}
        placeholder={placeholder}
        spellcheck={false}
        onInput={({ currentTarget: { value: text } }) => search(text.trim())}
      />
    </div>
  );
}
