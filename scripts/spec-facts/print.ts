import { isObject } from './source.ts';

const lineWidth = 120;

/**
 * Prints a value as JSON. Each object and list that fits into one line is printed on one line.
 * @param used the number of characters between the indent and the value
 */
export function printJson(value: unknown, indent = '', used = 0): string {
  const line = inOneLine(value);
  if (indent.length + used + line.length <= lineWidth || !isCollection(value)) return line;
  const deeper = `${indent}  `;
  if (Array.isArray(value)) {
    return `[\n${value.map((item) => deeper + printJson(item, deeper)).join(',\n')}\n${indent}]`;
  }
  const members = Object.entries(value).map(([name, member]) => {
    const key = `${JSON.stringify(name)}: `;
    return deeper + key + printJson(member, deeper, key.length);
  });
  return `{\n${members.join(',\n')}\n${indent}}`;
}

function inOneLine(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(inOneLine).join(', ')}]`;
  if (!isObject(value)) return JSON.stringify(value);
  const members = Object.entries(value).map(
    ([name, member]) => `${JSON.stringify(name)}: ${inOneLine(member)}`,
  );
  return `{${members.join(', ')}}`;
}

const isCollection = (value: unknown): value is object =>
  (Array.isArray(value) && value.length > 0) || (isObject(value) && Object.keys(value).length > 0);
