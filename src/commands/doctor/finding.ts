/** How serious a finding is: errors and warnings must be mended; `ok` findings and notes need not. */
export type Level = 'ok' | 'note' | 'warning' | 'error';

/** One result of `hearth doctor`. */
export interface Finding {
  /** Identifies the kind of finding for scripts; stays the same in later versions. */
  readonly name: string;
  readonly level: Level;
  /** Describes the state, in one or two sentences. */
  readonly message: string;
  /** How to mend the problem, for instance a command or lines of configuration. */
  readonly fix?: string;
}

export const ok = (name: string, message: string): Finding => ({ name, level: 'ok', message });
export const note = (name: string, message: string, fix?: string): Finding =>
  found('note', name, message, fix);
export const warning = (name: string, message: string, fix?: string): Finding =>
  found('warning', name, message, fix);
export const error = (name: string, message: string, fix?: string): Finding =>
  found('error', name, message, fix);

const found = (level: Level, name: string, message: string, fix: string | undefined): Finding => ({
  name,
  level,
  message,
  ...(fix !== undefined && { fix }),
});
