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

/** A certificate authority that only the tests trust. */
export interface TestAuthority {
  /** Its certificate as PEM, and a file with it. */
  readonly pem: string;
  readonly path: string;
  /** Issues a certificate for host names and addresses; the same names get the same certificate. */
  issue(...names: readonly string[]): Certificate;
  remove(): void;
}

const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];

/** Makes an authority in a new temporary folder. */
export function makeTestAuthority(): TestAuthority {
  const folder = mkdtempSync(join(tmpdir(), 'hearth-authority-'));
  const openssl = (...args: readonly string[]) =>
    execFileSync('openssl', args, { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] });
  const read = (file: string) => readFileSync(join(folder, file), 'utf8');
  const subject = ['-subj', '/CN=Test authority'];
  openssl('req', '-x509', ...newKey, ...subject, '-days', '2', '-keyout', 'ca.key', '-out', 'ca.pem');
  const issued = new Map<string, Certificate>();
  return {
    pem: read('ca.pem'),
    path: join(folder, 'ca.pem'),
    issue(...names) {
      const id = String(issued.size);
      const alternatives = names.map((name) => `${isIP(name) === 0 ? 'DNS' : 'IP'}:${name}`).join(',');
      const known = issued.get(alternatives);
      if (known) return known;
      writeFileSync(join(folder, `${id}.ext`), `subjectAltName=${alternatives}\n`);
      openssl('req', ...newKey, '-subj', '/CN=Test server', '-keyout', `${id}.key`, '-out', `${id}.csr`);
      const signed = ['-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-extfile', `${id}.ext`];
      openssl('x509', '-req', '-in', `${id}.csr`, ...signed, '-days', '2', '-out', `${id}.pem`);
      const certificate = { key: read(`${id}.key`), cert: read(`${id}.pem`) };
      issued.set(alternatives, certificate);
      return certificate;
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

let common: TestAuthority | undefined;

/** The authority that all tests of a process share, because making certificates is slow. */
export function commonTestAuthority(): TestAuthority {
  if (common) return common;
  const made = makeTestAuthority();
  process.once('exit', () => made.remove());
  common = { ...made, remove: () => undefined };
  return common;
}
