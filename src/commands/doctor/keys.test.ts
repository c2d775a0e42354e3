import assert from 'node:assert/strict';
import { chmodSync, copyFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { selectedDatabases } from '../../../test/support/databases/databases.ts';
import { testConfiguration } from '../../../test/support/servers/server.ts';
import { systemClock } from '../../kernel/clock.ts';
import { readSigningKeys } from '../../protocol/index.ts';
import { checkSigningKeys } from './checks/signing-keys.ts';
import type { Examination } from './examination.ts';
import { assertFound, doctorSubject, fixtureKey, type SubjectChange } from './test/doctor-subject.ts';
import { asOtherUser } from './test/other-user.ts';

const day = 24 * 60 * 60 * 1_000;

for (const database of selectedDatabases(import.meta.url)) {
  describe(`hearth doctor on ${database}`, () => {
    const subject = doctorSubject(database);
    const { authority, findings } = subject;

    describe('checks of keys', () => {
      it('reports a signing key that other users of the machine can read, that is damaged, or that is missing', async () => {
        const copy = join(subject.folder, 'other.key');
        copyFileSync(fixtureKey, copy);
        chmodSync(copy, 0o644);
        const readable = await findings({ options: { signing_key_path: copy } });
        assertFound(
          readable,
          'signing-key-permissions',
          'warning',
          /Other users/,
          /^chmod 600 .*other\.key$/,
        );
        writeFileSync(copy, 'ed25519 a_b nonsense\n');
        assertFound(
          await findings({ options: { signing_key_path: copy } }),
          'signing-key-unreadable',
          'error',
          /32 bytes in base64/,
        );
        rmSync(copy);
        assertFound(
          await findings({ options: { signing_key_path: copy } }),
          'signing-key-missing',
          'note',
          /the next start creates one/,
        );
      });

      it('advises to run the command as the user of the server when the command cannot read the file of the key', () => {
        const path = join(subject.folder, 'private.key');
        copyFileSync(fixtureKey, path);
        chmodSync(path, 0o000);
        const configuration = testConfiguration({ federationClient: { signing_key_path: path } });
        const found = asOtherUser(() =>
          checkSigningKeys({ configuration, clock: systemClock } as Examination),
        );
        assert.equal(found.length, 1);
        assertFound(
          found,
          'signing-key-unreadable',
          'error',
          /EACCES/,
          /^run this command as the user of the server/,
        );
      });

      it('reports old keys that are in use, have the id of another key, or expire in the future', async () => {
        const [{ keyId, publicKey }] = readSigningKeys(readFileSync(subject.keyFile, 'utf8')) as [
          ReturnType<typeof readSigningKeys>[number],
        ];
        const findingsWithOldKey = (id: string, key: string, expired_ts: number) =>
          findings({ options: { old_signing_keys: { [id]: { key, expired_ts } } } });
        const other = 'uKZjhjhIIkHNb0b38U4lZXX6SSfDPraORrnRNdWPq5M';
        assertFound(
          await findingsWithOldKey(keyId, publicKey.base64, 1),
          'old-signing-key-in-use',
          'warning',
          /in use/,
          /delete/,
        );
        assertFound(
          await findingsWithOldKey(keyId, other, 1),
          'old-signing-key-conflict',
          'error',
          /different keys with the id/,
          /another id/,
        );
        assertFound(
          await findingsWithOldKey('ed25519:x', other, Date.now() + day),
          'old-signing-key-future',
          'error',
          /future/,
          /expired_ts/,
        );
      });
    });

    describe('checks of certificate files', () => {
      const withTls = (cert: string, key: string): SubjectChange => {
        const paths = [join(subject.folder, 'cert.pem'), join(subject.folder, 'key.pem')] as const;
        writeFileSync(paths[0], cert);
        writeFileSync(paths[1], key);
        return {
          options: {
            tls_certificate_path: paths[0],
            tls_private_key_path: paths[1],
            listeners: [
              {
                port: subject.port,
                type: 'http',
                tls: true,
                bind_addresses: ['127.0.0.1'],
                resources: [{ names: ['client'] }],
              },
            ],
          },
        };
      };

      it('accepts a certificate for the IP address in public_baseurl, IPv4 or IPv6', async () => {
        for (const [address, url] of [
          ['192.0.2.1', 'https://192.0.2.1'],
          ['2001:db8::1', 'https://[2001:db8::1]'],
        ] as const) {
          const { cert, key } = authority.issue(address);
          const { options } = withTls(cert, key);
          const found = await findings({ options: { ...options, public_baseurl: url } });
          assertFound(found, 'certificate', 'ok', /cert\.pem/);
        }
      });

      it('reports a certificate for a wrong name, a key of another certificate, a certificate that expires soon, has expired or is not valid yet, and a damaged file', async () => {
        const right = authority.issue('matrix.example.org');
        const other = authority.issue('other.example');
        const good = withTls(right.cert, right.key);
        const where = /cert\.pem/;
        assertFound(await findings(good), 'certificate', 'ok', where);
        assertFound(
          await findings(withTls(other.cert, other.key)),
          'certificate-name',
          'warning',
          /is for other\.example, and not for matrix\.example\.org.* Behind a reverse proxy/,
          /certbot certonly -d matrix\.example\.org/,
        );
        const serverNameCertificate = authority.issue('example.org');
        assertFound(
          await findings(withTls(serverNameCertificate.cert, serverNameCertificate.key)),
          'certificate',
          'ok',
          /cert\.pem/,
        );
        assertFound(
          await findings(withTls(right.cert, other.key)),
          'certificate-key',
          'error',
          /does not belong/,
          /privkey\.pem/,
        );
        const changed = withTls(right.cert, right.key);
        assertFound(
          await findings({ ...changed, now: () => Date.now() + 80 * day }),
          'certificate-expires',
          'warning',
          /in (9|10) days/,
          /certbot renew/,
        );
        assertFound(
          await findings({ ...changed, now: () => Date.now() + 100 * day }),
          'certificate-expired',
          'error',
          where,
          /certbot renew/,
        );
        assertFound(
          await findings({ ...changed, now: () => Date.now() - 2 * day }),
          'certificate-early',
          'error',
          where,
          /timedatectl/,
        );
        assertFound(
          await findings(withTls('nothing', right.key)),
          'certificate-file',
          'error',
          /contains no certificate/,
        );
      });
    });
  });
}
