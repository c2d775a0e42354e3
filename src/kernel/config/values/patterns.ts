import { RE2JS } from 're2js';

/** Whether a text is a regular expression in RE2 syntax, which is always matched in linear time. */
export function isRegularExpression(pattern: string): boolean {
  try {
    RE2JS.compile(pattern);
    return true;
  } catch {
    return false;
  }
}
