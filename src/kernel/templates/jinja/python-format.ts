const directive = /%(?:\((\w+)\))?([-+ 0]*)(\d{1,3})?(?:\.(\d{1,2}))?([sdifxX%])/g;

/**
 * Python's `text % values`: `%s`, `%d`, `%.1f`, `%05d`, `%x`, `%(name)s`, `%%`.
 * @param values a list with a value for each directive, an object with the values by name, or the only value
 * @throws Error when values are missing
 */
export function pythonFormat(text: string, values: unknown): string {
  const list = Array.isArray(values) ? values : [values];
  let used = 0;
  return text.replace(directive, (_, name, flags, width, precision, type) => {
    if (type === '%') return '%';
    const value = name === undefined ? list[used++] : memberOf(values, name);
    if (value === undefined) throw new Error(`not enough values for the format "${text}"`);
    return padded(converted(value, type, flags, precision), flags, Number(width ?? 0));
  });
}

const memberOf = (values: unknown, name: string): unknown =>
  values !== null && typeof values === 'object' && Object.hasOwn(values, name)
    ? (values as Record<string, unknown>)[name]
    : undefined;

function converted(value: unknown, type: string, flags: string, precision: string | undefined): string {
  if (type === 's') return String(value).slice(0, precision === undefined ? undefined : Number(precision));
  const number = Number(value);
  const sign = number >= 0 && flags.includes('+') ? '+' : number >= 0 && flags.includes(' ') ? ' ' : '';
  if (type === 'f') return sign + number.toFixed(Number(precision ?? 6));
  const whole = Math.trunc(number).toString(type === 'd' || type === 'i' ? 10 : 16);
  return sign + (type === 'X' ? whole.toUpperCase() : whole);
}

function padded(text: string, flags: string, width: number): string {
  if (flags.includes('-')) return text.padEnd(width);
  if (!flags.includes('0')) return text.padStart(width);
  const sign = /^[-+ ]/.exec(text)?.[0] ?? '';
  return sign + text.slice(sign.length).padStart(width - sign.length, '0');
}
