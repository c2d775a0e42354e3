import { createPublicKey, generateKeyPairSync, hash, type KeyObject, sign } from 'node:crypto';
import { isIP } from 'node:net';

/**
 * X.509 certificates (RFC 5280) with keys of the curve P-256. This module encodes them itself, because Node cannot make
 * certificates, and a process of `openssl` for each takes a hundred times as long.
 */

/** The contents of a certificate. */
export interface CertificateContents {
  /** Common name of the subject. */
  readonly subject: string;
  readonly publicKey: KeyObject;
  /** Common name and private key of the authority that signs it. */
  readonly issuer: { readonly name: string; readonly key: KeyObject };
  /** Host names and addresses that it is valid for. */
  readonly names?: readonly string[];
  readonly isAuthority?: boolean;
}

/** Object identifiers of the extensions and names in the certificates, encoded in hexadecimal digits. */
const oids = {
  basicConstraints: '551d13',
  subjectKeyIdentifier: '551d0e',
  authorityKeyIdentifier: '551d23',
  subjectAltName: '551d11',
  commonName: '550403',
  ecdsaWithSha256: '2a8648ce3d040302',
};

const validityMs = 90 * 24 * 60 * 60 * 1_000;

export const newKeyPair = (): { publicKey: KeyObject; privateKey: KeyObject } =>
  generateKeyPairSync('ec', { namedCurve: 'prime256v1' });

/** Returns a private key in PEM. */
export const pemOfKey = (key: KeyObject): string => String(key.export({ type: 'pkcs8', format: 'pem' }));

let serialNumbers = 0;

/** Makes a certificate that is valid for 90 days. @returns PEM */
export function makeCertificate(contents: CertificateContents): string {
  const { subject, publicKey, issuer, names = [], isAuthority = false } = contents;
  const now = Date.now();
  serialNumbers += 1;
  const alternatives = sequence(...names.map(alternativeName));
  const extensions = [
    ...(isAuthority
      ? [extension(oids.basicConstraints, sequence(der(0x01, Buffer.from([0xff]))), 'critical')]
      : []),
    extension(oids.subjectKeyIdentifier, der(0x04, keyIdentifier(publicKey))),
    extension(oids.authorityKeyIdentifier, sequence(der(0x80, keyIdentifier(createPublicKey(issuer.key))))),
    ...(names.length > 0 ? [extension(oids.subjectAltName, alternatives)] : []),
  ];
  const signed = sequence(
    der(0xa0, integer(2)),
    // TLS libraries reject two certificates of one authority with the same serial number.
    integer(now * 2 ** 8 + (serialNumbers % 2 ** 8)),
    ecdsaWithSha256,
    commonName(issuer.name),
    sequence(time(now), time(now + validityMs)),
    commonName(subject),
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(...extensions)),
  );
  const signature = sign('sha256', signed, { key: issuer.key, dsaEncoding: 'der' });
  const certificate = sequence(signed, ecdsaWithSha256, bits(signature));
  const lines = certificate.toString('base64').match(/.{1,64}/g)!;
  return ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n');
}

/** Returns a value in DER: its tag, its length and its contents. */
function der(tag: number, ...contents: readonly Buffer[]): Buffer {
  const body = Buffer.concat(contents);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(body.length);
  const digits = length.subarray(length.findIndex((byte) => byte > 0));
  const header = body.length < 0x80 ? [tag, body.length] : [tag, 0x80 + digits.length, ...digits];
  return Buffer.concat([Buffer.from(header), body]);
}

const sequence = (...contents: readonly Buffer[]): Buffer => der(0x30, ...contents);

/** @param hex the encoded object identifier, without tag and length */
const identifier = (hex: string): Buffer => der(0x06, Buffer.from(hex, 'hex'));

const bits = (contents: Buffer): Buffer => der(0x03, Buffer.from([0]), contents);

/** @param value at least 0 */
function integer(value: number): Buffer {
  const hex = value.toString(16);
  const digits = Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, 'hex');
  return der(0x02, digits[0]! < 0x80 ? digits : Buffer.concat([Buffer.from([0]), digits]));
}

const ecdsaWithSha256 = sequence(identifier(oids.ecdsaWithSha256));

const commonName = (name: string): Buffer =>
  sequence(der(0x31, sequence(identifier(oids.commonName), der(0x0c, Buffer.from(name)))));

/** @param milliseconds since the epoch */
function time(milliseconds: number): Buffer {
  const digits = new Date(milliseconds).toISOString().replace(/\D/g, '').slice(2, 14);
  return der(0x17, Buffer.from(`${digits}Z`));
}

const extension = (id: string, value: Buffer, critical?: 'critical'): Buffer =>
  sequence(identifier(id), ...(critical ? [der(0x01, Buffer.from([0xff]))] : []), der(0x04, value));

const keyIdentifier = (key: KeyObject): Buffer =>
  hash('sha1', key.export({ type: 'spki', format: 'der' }), 'buffer');

const alternativeName = (name: string): Buffer =>
  isIP(name) === 0 ? der(0x82, Buffer.from(name)) : der(0x87, addressBytes(name));

function addressBytes(address: string): Buffer {
  if (isIP(address) === 4) return Buffer.from(address.split('.').map(Number));
  const [start = '', end] = address.split('::');
  const groups = (text: string) => (text === '' ? [] : text.split(':'));
  const last = end === undefined ? [] : groups(end);
  const zeros = Array<string>(8 - groups(start).length - last.length).fill('0');
  const hex = [...groups(start), ...zeros, ...last].map((group) => group.padStart(4, '0')).join('');
  return Buffer.from(hex, 'hex');
}
