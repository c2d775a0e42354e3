/** Whether a text matches. */
export type TextMatcher = (text: string) => boolean;

/**
 * Returns a matcher for an include list and an exclude list; `undefined` when everything matches. The exclude list
 * takes precedence.
 */
export function allowedBy(
  included: readonly string[] | undefined,
  excluded: readonly string[] | undefined,
  compile: (list: readonly string[]) => TextMatcher,
): TextMatcher | undefined {
  const isIncluded = included && compile(included);
  const isExcluded = excluded && excluded.length > 0 ? compile(excluded) : undefined;
  if (isIncluded && isExcluded) return (text) => isIncluded(text) && !isExcluded(text);
  return isIncluded ?? (isExcluded && ((text) => !isExcluded(text)));
}

/** Matches texts that are in the list. */
export function anyOf(list: readonly string[]): TextMatcher {
  const texts = new Set(list);
  return (text) => texts.has(text);
}

/** Matches texts that match a pattern in the list. In a pattern, `*` stands for any characters. */
export function anyPattern(list: readonly string[]): TextMatcher {
  const isLiteral = anyOf(list.filter((pattern) => !pattern.includes('*')));
  const patterns = list.filter((pattern) => pattern.includes('*')).map(compilePattern);
  return (text) => isLiteral(text) || patterns.some((matches) => matches(text));
}

/**
 * Compiles a pattern with at least one `*` to a matcher that searches each part once, from left to right: if the leftmost
 * occurrence does not lead to a match, no other one does.
 */
function compilePattern(pattern: string): TextMatcher {
  const parts = pattern.split('*');
  const first = parts.shift()!;
  const last = parts.pop()!;
  return (text) => {
    if (text.length < first.length + last.length) return false;
    if (!text.startsWith(first) || !text.endsWith(last)) return false;
    const end = text.length - last.length;
    let position = first.length;
    for (const part of parts) {
      const found = text.indexOf(part, position);
      if (found === -1 || found + part.length > end) return false;
      position = found + part.length;
    }
    return true;
  };
}
