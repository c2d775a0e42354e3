/** Pattern of permission bits. */
export const fileModePattern = '^(0o)?[0-7]{3,4}$';

/**
 * Parses permission bits as chmod does: `660`, `0660` and `0o660` are all 0o660.
 * @returns undefined for other forms and for bits beyond 0o777
 */
export function parseFileMode(text: string): number | undefined {
  if (!new RegExp(fileModePattern).test(text)) return undefined;
  const mode = Number.parseInt(text.replace('0o', ''), 8);
  return mode <= 0o777 ? mode : undefined;
}

/** Formats permission bits for chmod; the inverse of `parseFileMode`. */
export function formatFileMode(mode: number): string {
  return mode.toString(8).padStart(3, '0');
}
