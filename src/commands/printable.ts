/**
 * Replaces control characters: names and reasons are chosen by users and other servers, and must not control the terminal
 * of an administrator.
 */
export const printable = (text: string): string => text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '�');
