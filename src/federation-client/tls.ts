import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { SecureVersion } from 'node:tls';
import { TlsSettings } from '../kernel/outbound/index.ts';
import { startStep } from '../kernel/start-failure.ts';
import { compileGlob } from '../protocol/index.ts';
import type { FederationClientConfig } from './config.ts';

type Options = Pick<
  FederationClientConfig,
  | 'federation_verify_certificates'
  | 'federation_client_minimum_tls_version'
  | 'federation_certificate_verification_whitelist'
  | 'federation_custom_ca_list'
>;

/** Returns the TLS settings for a host, by the name or address that its certificate must be valid for. */
export type FederationTls = (name: string) => TlsSettings;

/**
 * Reads the configured certificate authorities, and returns the function that chooses the TLS settings for a host.
 * @throws StartFailure when a file of `federation_custom_ca_list` cannot be read or has no certificate
 */
export async function federationTls(options: Options): Promise<FederationTls> {
  const files = options.federation_custom_ca_list;
  const authorities = await Promise.all(files.map(readAuthority));
  const shared = {
    minimumVersion: versions[options.federation_client_minimum_tls_version] ?? 'TLSv1.2',
    ...(authorities.length > 0 && { authorities }),
  };
  const strict = new TlsSettings({ ...shared, verify: options.federation_verify_certificates });
  const lax = new TlsSettings({ ...shared, verify: false });
  const exempt = options.federation_certificate_verification_whitelist.map((pattern) =>
    compileGlob(pattern.toLowerCase()),
  );
  return (name) => (exempt.some((matches) => matches(name.toLowerCase())) ? lax : strict);
}

function readAuthority(file: string, index: number): Promise<string> {
  return startStep(`federation_custom_ca_list[${index}]: ${file}`, async () => {
    const text = await readFile(file, 'utf8');
    new X509Certificate(text);
    return text;
  });
}

const versions: Readonly<Record<string, SecureVersion>> = {
  '1': 'TLSv1',
  '1.1': 'TLSv1.1',
  '1.2': 'TLSv1.2',
  '1.3': 'TLSv1.3',
};
