import { RE2JS } from 're2js';

/** Whether a text is a regular expression in RE2's syntax, which is matched in linear time whatever it says. */
export function isRegularExpression(pattern: string): boolean {
  try {
    RE2JS.compile(pattern);
    return true;
  } catch {
    return false;
  }
}
