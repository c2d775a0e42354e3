import { isServerName, type ServerName } from './server-names.ts';

export interface LocalpartAndServer {
  readonly localpart: string;
  readonly serverName: ServerName;
}

/**
 * Splits `<sigil>localpart:domain` at the first colon, because a localpart holds none and a domain may. The
 * localpart may be empty, and may hold any Unicode except NUL. The caller checks the length, because old
 * rooms count it differently.
 * Source: appendices, "Common Identifier Format".
 */
export function splitAtServer(text: string, sigil: string): LocalpartAndServer | undefined {
  const colon = text.indexOf(':');
  if (colon < 1 || text[0] !== sigil) return undefined;
  const localpart = text.slice(1, colon);
  const serverName = text.slice(colon + 1);
  if (localpart.includes('\0') || !localpart.isWellFormed() || !isServerName(serverName)) return undefined;
  return { localpart, serverName };
}
