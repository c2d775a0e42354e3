const standardAlphabet = /^[A-Za-z0-9+/]*={0,2}$/;
const urlSafeAlphabet = /^[A-Za-z0-9_-]*={0,2}$/;

/** Encodes unpadded base64 in the standard alphabet. Source: appendices, "Unpadded Base64". */
export function encodeBase64(bytes: Uint8Array): string {
  const padded = asBuffer(bytes).toString('base64');
  const padding = padded.indexOf('=');
  return padding === -1 ? padded : padded.slice(0, padding);
}

/** Decodes base64 in either alphabet, padded or not; `undefined` if it is malformed. */
export function decodeBase64(text: string): Uint8Array | undefined {
  if (!standardAlphabet.test(text) && !urlSafeAlphabet.test(text)) return undefined;
  const padding = text.indexOf('=');
  const length = padding === -1 ? text.length : padding;
  if (length % 4 === 1 || (padding !== -1 && text.length % 4 !== 0)) return undefined;
  return Buffer.from(text, 'base64');
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
