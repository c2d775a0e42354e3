/** Whether a UTF-16 code unit or code point is in `[A-Za-z0-9_]`, the word characters of push rules. */
export function isWordCharacter(code: number): boolean {
  return (
    (code >= 0x61 && code <= 0x7a) ||
    (code >= 0x41 && code <= 0x5a) ||
    (code >= 0x30 && code <= 0x39) ||
    code === 0x5f
  );
}

/**
 * Whether a match may start or end at this position, counted in UTF-16 code units: at either end of the text,
 * or next to a character that is not a word character.
 * Source: client-server API, "Push Rules", content-specific rules.
 */
export function isWordBoundary(text: string, position: number): boolean {
  return (
    position === 0 ||
    position === text.length ||
    !isWordCharacter(text.charCodeAt(position - 1)) ||
    !isWordCharacter(text.charCodeAt(position))
  );
}
