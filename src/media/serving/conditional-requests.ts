import type { RouteRequest } from '../../kernel/http/index.ts';

type Headers = RouteRequest['headers'];

const textOf = (value: string | string[] | undefined) =>
  Array.isArray(value) ? value.join(',') : (value ?? '');

/** Reports whether `If-None-Match` says that the client has the content with this entity tag. Source: RFC 9110, 13.1.2. */
export function isKnown(headers: Headers, tag: string): boolean {
  const ifNoneMatch = textOf(headers['if-none-match']);
  if (ifNoneMatch.trim() === '*') return true;
  return ifNoneMatch.split(',').some((entityTag) => entityTag.trim().replace(/^W\//, '') === tag);
}

export interface ByteRange {
  readonly start: number;
  readonly length: number;
}

/**
 * Returns the range of bytes that a request specifies.
 * @returns `unsatisfiable` for a range outside of the content; `undefined` when all bytes are sent: without a range,
 * for an invalid range, several ranges or another unit, and when `If-Range` names other content
 * Source: RFC 9110, 14.2.
 */
export function rangeOf(
  headers: Headers,
  size: number,
  tag: string,
): ByteRange | 'unsatisfiable' | undefined {
  const [, first = '', last = ''] =
    /^bytes=(\d{0,15})-(\d{0,15})$/.exec(textOf(headers['range']).trim()) ?? [];
  if (first === '' && last === '') return undefined;
  const condition = headers['if-range'];
  if (condition !== undefined && condition !== tag) return undefined;
  const start = first === '' ? Math.max(0, size - Number(last)) : Number(first);
  const end = first === '' || last === '' ? size - 1 : Math.min(Number(last), size - 1);
  if (first !== '' && last !== '' && Number(last) < start) return undefined;
  return start > end ? 'unsatisfiable' : { start, length: end - start + 1 };
}
