import { readFileSync, statSync } from 'node:fs';
import { readSigningKeys, type SigningKey } from '../../../protocol/index.ts';
import type { Examination } from '../examination.ts';
import { error, type Finding, note, ok, warning } from '../finding.ts';

/**
 * Returns the keys of the file `signing_key_path`. Returns none when they cannot be read; `checkSigningKeys` reports
 * that.
 */
export function ownSigningKeys({ configuration }: Examination): readonly SigningKey[] {
  const { signing_key_path: path } = configuration.federationClient;
  try {
    return path === null ? [] : readSigningKeys(readFileSync(path, 'utf8'));
  } catch {
    return [];
  }
}

/** Checks that only this server can read the signing key, and that `old_signing_keys` does not contradict it. */
export function checkSigningKeys({ configuration, clock }: Examination): readonly Finding[] {
  const { signing_key_path: path, old_signing_keys: old } = configuration.federationClient;
  if (path === null)
    return [error('signing-key-missing', 'There is no signing key.', 'signing_key_path: /path')];
  let keys: readonly SigningKey[];
  try {
    keys = readSigningKeys(readFileSync(path, 'utf8'));
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') {
      return [
        note(
          'signing-key-missing',
          `The signing key ${path} does not exist; the next start creates one. If this server has had one, put it back from a backup: other servers reject events that an unknown key has signed under a known id.`,
        ),
      ];
    }
    const reason = cause instanceof Error ? cause.message : String(cause);
    const isDenied = ['EACCES', 'EPERM'].includes(String((cause as NodeJS.ErrnoException).code));
    return [
      error(
        'signing-key-unreadable',
        `The signing key ${path} cannot be used: ${reason}.`,
        isDenied
          ? `run this command as the user of the server, or let that user read the file: ls -l ${path}`
          : 'put the file back from a backup, and let the user of the server read it',
      ),
    ];
  }
  const names = keys.map(({ keyId }) => keyId);
  const findings: Finding[] = [ok('signing-key', `${path} has ${names.join(', ')}; ${names[0]} signs.`)];
  if ((statSync(path).mode & 0o077) !== 0) {
    findings.push(
      warning(
        'signing-key-permissions',
        `Other users of this machine can read the signing key ${path}: with it, anyone can act as this server.`,
        `chmod 600 ${path}`,
      ),
    );
  }
  for (const [keyId, { expired_ts: expired, key }] of Object.entries(old)) {
    const current = keys.find((signingKey) => signingKey.keyId === keyId);
    if (current !== undefined) {
      findings.push(
        current.publicKey.base64 === key.replace(/=+$/, '')
          ? warning(
              'old-signing-key-in-use',
              `old_signing_keys lists ${keyId}, which is in use.`,
              `delete old_signing_keys."${keyId}"`,
            )
          : error(
              'old-signing-key-conflict',
              `old_signing_keys and the file ${path} have different keys with the id ${keyId}: other servers cannot verify events of the old key.`,
              `give the new key another id: change the second word of the line in ${path}`,
            ),
      );
    } else if (expired > clock.now()) {
      findings.push(
        error(
          'old-signing-key-future',
          `old_signing_keys."${keyId}".expired_ts is in the future: it must be the time at which the key was last used.`,
          `old_signing_keys: { "${keyId}": { expired_ts: ${clock.now()}, key: … } }`,
        ),
      );
    }
  }
  return findings;
}
