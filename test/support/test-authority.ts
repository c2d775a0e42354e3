import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface Certificate {
  /** PEM. */
  readonly key: string;
  readonly cert: string;
}

/** A certificate authority that nobody trusts but the tests. */
export interface TestAuthority {
  /** PEM of its certificate, and a file with it. */
  readonly pem: string;
  readonly path: string;
  /** A certificate for host names and addresses. */
  issue(...names: readonly string[]): Certificate;
  remove(): void;
}

const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];

/** Makes an authority in a folder of its own. */
export function makeTestAuthority(): TestAuthority {
  const folder = mkdtempSync(join(tmpdir(), 'hearth-authority-'));
  const openssl = (...args: readonly string[]) =>
    execFileSync('openssl', args, { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] });
  const read = (file: string) => readFileSync(join(folder, file), 'utf8');
  const subject = ['-subj', '/CN=Test authority'];
  openssl('req', '-x509', ...newKey, ...subject, '-days', '2', '-keyout', 'ca.key', '-out', 'ca.pem');
  let issued = 0;
  return {
    pem: read('ca.pem'),
    path: join(folder, 'ca.pem'),
    issue(...names) {
      const id = String(++issued);
      const alternatives = names.map((name) => `${isIP(name) === 0 ? 'DNS' : 'IP'}:${name}`).join(',');
      writeFileSync(join(folder, `${id}.ext`), `subjectAltName=${alternatives}\n`);
      openssl('req', ...newKey, '-subj', '/CN=Test server', '-keyout', `${id}.key`, '-out', `${id}.csr`);
      const signed = ['-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-extfile', `${id}.ext`];
      openssl('x509', '-req', '-in', `${id}.csr`, ...signed, '-days', '2', '-out', `${id}.pem`);
      return { key: read(`${id}.key`), cert: read(`${id}.pem`) };
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
