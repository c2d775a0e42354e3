import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeCertificate, newKeyPair, pemOfKey } from './x509.ts';

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
  /** Makes a certificate that no authority has signed. */
  selfSigned(name: string): Certificate;
  remove(): void;
}

/** Makes an authority in a new temporary folder. */
export function makeTestAuthority(): TestAuthority {
  const folder = mkdtempSync(join(tmpdir(), 'hearth-authority-'));
  const { publicKey, privateKey } = newKeyPair();
  const issuer = { name: 'Test authority', key: privateKey };
  const pem = makeCertificate({ subject: issuer.name, publicKey, issuer, isAuthority: true });
  const path = join(folder, 'ca.pem');
  writeFileSync(path, pem);
  const issued = new Map<string, Certificate>();
  return {
    pem,
    path,
    issue(...names) {
      const id = names.join();
      const known = issued.get(id);
      if (known) return known;
      const own = newKeyPair();
      const cert = makeCertificate({ subject: 'Test server', publicKey: own.publicKey, issuer, names });
      const certificate = { key: pemOfKey(own.privateKey), cert };
      issued.set(id, certificate);
      return certificate;
    },
    selfSigned(name) {
      const own = newKeyPair();
      const subject = { subject: name, publicKey: own.publicKey, names: [name], isAuthority: true };
      const cert = makeCertificate({ ...subject, issuer: { name, key: own.privateKey } });
      return { key: pemOfKey(own.privateKey), cert };
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

let common: TestAuthority | undefined;

/** The authority that all tests of a process share. */
export function commonTestAuthority(): TestAuthority {
  if (common) return common;
  const made = makeTestAuthority();
  process.once('exit', () => made.remove());
  common = { ...made, remove: () => undefined };
  return common;
}
