/**
 * Returns a member of a value for a template: own members of objects, elements of lists and strings, and methods of
 * Python that change nothing. Does not return prototypes, constructors and members of functions, because a template
 * could access the process through them. Operators may copy templates, and configurations with templates, from others.
 */
export function memberOf(value: unknown, key: unknown): unknown {
  if (value === null || value === undefined || typeof value === 'function') return undefined;
  if (typeof value === 'string' || value instanceof String) return memberOfText(String(value), key);
  if (typeof value !== 'object') return undefined;
  if (Array.isArray(value)) return memberOfList(value, key);
  if (typeof key !== 'string' && typeof key !== 'number') return undefined;
  if (Object.hasOwn(value, key)) return (value as Record<string | number, unknown>)[key];
  return bound(dictMethods, value as Record<string, unknown>, key);
}

/** Python's `value[start:stop:step]` for lists and strings. */
export function sliceOf(value: unknown, start: unknown, stop: unknown, step: unknown): unknown {
  const isText = typeof value === 'string' || value instanceof String;
  const items = isText ? Array.from(String(value)) : Array.isArray(value) ? value : [];
  const increment = typeof step === 'number' && step !== 0 ? Math.trunc(step) : 1;
  const [first, last] = increment > 0 ? [0, items.length] : [items.length - 1, -1];
  const position = (given: unknown, fallback: number) => {
    if (typeof given !== 'number') return fallback;
    const from = given < 0 ? given + items.length : given;
    return increment > 0
      ? Math.min(Math.max(from, 0), items.length)
      : Math.min(Math.max(from, -1), items.length - 1);
  };
  const end = position(stop, last);
  const taken: unknown[] = [];
  for (let at = position(start, first); increment > 0 ? at < end : at > end; at += increment)
    taken.push(items[at]);
  return isText ? taken.join('') : taken;
}

/** Returns the items of a loop: the keys of an object, the characters of a text. */
export function itemsOf(value: unknown): unknown {
  if (typeof value === 'string' || value instanceof String) return Array.from(String(value));
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return value;
  return Symbol.iterator in value ? Array.from(value as Iterable<unknown>) : Object.keys(value);
}

/** Python's truth value: empty texts, lists and objects are false. */
export function isTrue(value: unknown): boolean {
  if (value instanceof String) return String(value) !== '';
  if (Array.isArray(value)) return value.length > 0;
  if (value === null || typeof value !== 'object') return Boolean(value);
  const prototype = Object.getPrototypeOf(value);
  return (prototype !== null && prototype !== Object.prototype) || Object.keys(value).length > 0;
}

const elementOf = (items: ArrayLike<unknown>, key: number) => items[key < 0 ? items.length + key : key];

function memberOfText(text: string, key: unknown): unknown {
  return typeof key === 'number' ? elementOf(Array.from(text), key) : bound(textMethods, text, key);
}

function memberOfList(list: readonly unknown[], key: unknown): unknown {
  return typeof key === 'number' ? elementOf(list, key) : bound(listMethods, list, key);
}

type Methods<T> = Readonly<Record<string, (value: T, ...args: never[]) => unknown>>;

function bound<T>(methods: Methods<T>, value: T, key: unknown): unknown {
  if (typeof key !== 'string' || !Object.hasOwn(methods, key)) return undefined;
  const method = methods[key] as (value: T, ...args: unknown[]) => unknown;
  return (...args: unknown[]) => method(value, ...args);
}

const dictMethods: Methods<Record<string, unknown>> = {
  get: (value, key: string, fallback: unknown = null) => (Object.hasOwn(value, key) ? value[key] : fallback),
  items: (value) => Object.entries(value),
  keys: (value) => Object.keys(value),
  values: (value) => Object.values(value),
};

const listMethods: Methods<readonly unknown[]> = {
  count: (list, wanted: unknown) => list.filter((item) => item === wanted).length,
  index: (list, wanted: unknown) => list.indexOf(wanted),
};

const textMethods: Methods<string> = {
  capitalize: (text) => text.slice(0, 1).toUpperCase() + text.slice(1).toLowerCase(),
  count: (text, part: string) => text.split(part).length - 1,
  endswith: (text, end: string) => text.endsWith(end),
  find: (text, part: string) => text.indexOf(part),
  isdigit: (text) => /^\p{Nd}+$/u.test(text),
  join: (text, items: readonly unknown[]) => Array.from(items).join(text),
  lower: (text) => text.toLowerCase(),
  lstrip: (text, characters?: string) => stripped(text, characters, true, false),
  partition: (text, separator: string) => cutAt(text, text.indexOf(separator), separator) ?? [text, '', ''],
  removeprefix: (text, start: string) => (text.startsWith(start) ? text.slice(start.length) : text),
  removesuffix: (text, end: string) => (end !== '' && text.endsWith(end) ? text.slice(0, -end.length) : text),
  replace: (text, from: string, to: string) => text.replaceAll(from, () => to),
  rpartition: (text, separator: string) =>
    cutAt(text, text.lastIndexOf(separator), separator) ?? ['', '', text],
  rsplit: (text, separator?: string | null, max?: number) => splitFromEnd(text, separator, max),
  rstrip: (text, characters?: string) => stripped(text, characters, false, true),
  split: (text, separator?: string | null, max?: number) => split(text, separator, max),
  startswith: (text, start: string) => text.startsWith(start),
  strip: (text, characters?: string) => stripped(text, characters, true, true),
  title: (text) =>
    text.toLowerCase().replace(/\p{L}+/gu, (word) => word.slice(0, 1).toUpperCase() + word.slice(1)),
  upper: (text) => text.toUpperCase(),
};

function stripped(text: string, characters: string | undefined, start: boolean, end: boolean): string {
  const isStripped = (character: string | undefined) =>
    character !== undefined && (characters ? characters.includes(character) : /\s/.test(character));
  let from = 0;
  let to = text.length;
  while (start && from < to && isStripped(text[from])) from++;
  while (end && to > from && isStripped(text[to - 1])) to--;
  return text.slice(from, to);
}

/** Returns the text before `index`, the separator that begins there, and the rest; undefined for a negative index. */
function cutAt(text: string, index: number, separator: string): string[] | undefined {
  return index === -1 ? undefined : [text.slice(0, index), separator, text.slice(index + separator.length)];
}

/** Python's `rsplit`: as `split`, but the last `max` separators divide the text, and its beginning stays whole. */
function splitFromEnd(text: string, separator: string | null | undefined, max = -1): string[] {
  const parts = split(text, separator);
  if (typeof separator !== 'string' || max < 0 || parts.length <= max + 1) return parts;
  const start = parts.length - max;
  return [parts.slice(0, start).join(separator), ...parts.slice(start)];
}

/**
 * Python's `split`. After `max` parts, the rest stays whole; a negative `max` is no maximum. Without a separator, splits at
 * all white space, whatever `max` is.
 */
function split(text: string, separator: string | null | undefined, max = -1): string[] {
  if (typeof separator !== 'string') return text.split(/\s+/).filter((part) => part !== '');
  const parts = text.split(separator);
  return max >= 0 && parts.length > max + 1
    ? [...parts.slice(0, max), parts.slice(max).join(separator)]
    : parts;
}
