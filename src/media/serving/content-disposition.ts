import { essenceOf, isFileName } from '../description.ts';

/** Content types that browsers may show safely. Source: client-server API, "Serving inline content". */
const inlineTypes: ReadonlySet<string> = new Set([
  'text/css',
  'text/plain',
  'text/csv',
  'application/json',
  'application/ld+json',
  'image/jpeg',
  'image/gif',
  'image/png',
  'image/apng',
  'image/webp',
  'image/avif',
  'video/mp4',
  'video/webm',
  'video/ogg',
  'video/quicktime',
  'audio/mp4',
  'audio/webm',
  'audio/aac',
  'audio/mpeg',
  'audio/ogg',
  'audio/wave',
  'audio/wav',
  'audio/x-wav',
  'audio/x-pn-wav',
  'audio/flac',
  'audio/x-flac',
]);

/** Codes of the characters that are not escaped in extended values of RFC 8187, besides letters and digits. */
const plain = new Set([...'!#$&+-.^_`|~'].map((character) => character.charCodeAt(0)));

/**
 * Returns the `Content-Disposition` header for content: `inline` only for types that browsers may show safely.
 * Source: client-server API, `GET /_matrix/client/v1/media/download/{serverName}/{mediaId}`; RFC 6266.
 */
export function contentDisposition(contentType: string, fileName: string | undefined): string {
  const disposition = inlineTypes.has(essenceOf(contentType)) ? 'inline' : 'attachment';
  return fileName === undefined ? disposition : `${disposition}; ${nameParameter(fileName)}`;
}

function nameParameter(name: string): string {
  if (/^[\w.-]+$/.test(name)) return `filename=${name}`;
  if (/^[\x20-\x7e]*$/.test(name)) return `filename="${name.replace(/["\\]/g, '\\$&')}"`;
  return `filename*=utf-8''${extended(name)}`;
}

function extended(name: string): string {
  let text = '';
  for (const byte of Buffer.from(name)) {
    const character = String.fromCharCode(byte);
    text +=
      /[A-Za-z0-9]/.test(character) || plain.has(byte)
        ? character
        : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
  }
  return text;
}

/** Maximum number of characters of a header that is parsed. */
const maxHeaderLength = 8_192;

/**
 * Returns the file name in a `Content-Disposition` header of a remote server; `undefined` without a valid file name. Prefers
 * the extended form. Source: RFC 6266, sections 4.1 and 4.3.
 */
export function fileNameIn(header: string | undefined): string | undefined {
  if (header === undefined || header.length > maxHeaderLength) return undefined;
  const parameters = parametersOf(header);
  const name = extendedValue(parameters.get('filename*')) ?? parameters.get('filename');
  return name !== undefined && name !== '' && isFileName(name) ? name : undefined;
}

const parameter = /;[ \t]*([\w*-]+)[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*)"|([^\s;"]*))[ \t]*/y;

/** Reads the first parameter of each name, up to the first syntax error. */
function parametersOf(header: string): ReadonlyMap<string, string> {
  const parameters = new Map<string, string>();
  const begin = header.indexOf(';');
  if (begin === -1) return parameters;
  parameter.lastIndex = begin;
  for (;;) {
    const match = parameter.exec(header);
    if (match === null) return parameters;
    const [, name = '', quoted, token] = match;
    const key = name.toLowerCase();
    if (!parameters.has(key)) parameters.set(key, quoted?.replace(/\\(.)/g, '$1') ?? token ?? '');
  }
}

function extendedValue(value: string | undefined): string | undefined {
  const encoded = value && /^utf-8'[^']*'([^']*)$/i.exec(value)?.[1];
  if (!encoded) return undefined;
  try {
    return decodeURIComponent(encoded);
  } catch {
    return undefined;
  }
}
