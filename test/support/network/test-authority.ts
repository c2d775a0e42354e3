import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeCertificate, newKeyPair, pemOfKey } from './x509.ts';

/** A certificate and its private key, both as PEM. */
export interface Certificate {
  readonly key: string;
  readonly cert: string;
}

/** A certificate authority that only the tests trust. */
export interface TestAuthority {
  /** Certificate of the authority as PEM. */
  readonly pem: string;
  /** Path of a file with the certificate of the authority. */
  readonly path: string;
  /** Issues a certificate for host names and addresses; for the same names, it issues the same certificate. */
  issue(...names: readonly string[]): Certificate;
  /** Makes a certificate that no authority has signed. */
  selfSigned(name: string): Certificate;
  /** Deletes the file of the certificate. */
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
      const issuedBefore = issued.get(id);
      if (issuedBefore) return issuedBefore;
      const keys = newKeyPair();
      const cert = makeCertificate({ subject: 'Test server', publicKey: keys.publicKey, issuer, names });
      const certificate = { key: pemOfKey(keys.privateKey), cert };
      issued.set(id, certificate);
      return certificate;
    },
    selfSigned(name) {
      const keys = newKeyPair();
      const subject = { subject: name, publicKey: keys.publicKey, names: [name], isAuthority: true };
      const cert = makeCertificate({ ...subject, issuer: { name, key: keys.privateKey } });
      return { key: pemOfKey(keys.privateKey), cert };
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

let common: TestAuthority | undefined;

/** The authority that all tests of a process share. */
export function commonTestAuthority(): TestAuthority {
  if (common) return common;
  const authority = makeTestAuthority();
  process.once('exit', () => authority.remove());
  common = { ...authority, remove: () => undefined };
  return common;
}
