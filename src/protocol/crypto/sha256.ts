import { hash } from 'node:crypto';

/** Returns the SHA-256 of the text in UTF-8, as unpadded base64. */
export function sha256Base64(text: string): string {
  return hash('sha256', text, 'base64').slice(0, 43);
}

/** Returns the SHA-256 of the text in UTF-8, as URL-safe unpadded base64. */
export function sha256Base64Url(text: string): string {
  return hash('sha256', text, 'base64url');
}
