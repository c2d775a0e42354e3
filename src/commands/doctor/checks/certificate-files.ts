import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { listenersOf } from '../../../kernel/http/index.ts';
import { isCertificateFor } from '../../../kernel/outbound/index.ts';
import { parseServerName } from '../../../protocol/index.ts';
import type { Examination } from '../examination.ts';
import { error, type Finding, warning } from '../finding.ts';
import { certificateFindings } from './certificate-findings.ts';
import { clientsUrl } from './clients.ts';

/**
 * Checks the files of the certificate that is configured for listeners with `tls: true`. A wrong name and a
 * self-signed certificate are warnings only: behind a reverse proxy, neither clients nor other servers see this
 * certificate. The certificate that they see is checked at the public addresses.
 */
export function checkCertificateFiles(examination: Examination): readonly Finding[] {
  const { configuration, clock } = examination;
  const listener = listenersOf(configuration.http).find(({ bind }) => bind.kind === 'tcp' && bind.tls);
  if (listener?.bind.kind !== 'tcp' || listener.bind.tls === undefined) return [];
  const { certificate: path, key: keyPath } = listener.bind.tls;
  let chain: readonly X509Certificate[];
  try {
    chain = certificatesIn(readFileSync(path, 'utf8'));
    if (chain.length === 0) throw new Error('it contains no certificate');
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    return [
      error(
        'certificate-file',
        `The certificate ${path} cannot be used: ${reason}.`,
        `ls -l ${path}, and let the user of the server read it`,
      ),
    ];
  }
  const [leaf] = chain;
  const { hostname } = clientsUrl(examination);
  const { host = hostname } = parseServerName(configuration.server.server_name) ?? {};
  const findings = certificateFindings(
    path,
    hostname,
    {
      names: leaf!.subjectAltName?.split(', ') ?? [],
      isForName: [hostname, host].some((name) => isCertificateFor(leaf!, name)),
      validFrom: leaf!.validFromDate.getTime(),
      validTo: leaf!.validToDate.getTime(),
      // The chain is checked where the server presents it.
      chainProblem: leaf!.checkIssued(leaf!) ? 'DEPTH_ZERO_SELF_SIGNED_CERT' : undefined,
    },
    clock.now(),
  );
  return [...findings.map(toFileFinding), ...keyFindings(leaf!, keyPath)];
}

/** Names of findings that do not matter behind a reverse proxy. */
const irrelevantBehindProxy = new Set(['certificate-name', 'certificate-untrusted']);

/** Makes a finding a warning if it does not matter behind a reverse proxy. */
function toFileFinding(finding: Finding): Finding {
  const { name, message, fix } = finding;
  if (!irrelevantBehindProxy.has(name)) return finding;
  return warning(
    name,
    `${message} Behind a reverse proxy with another certificate, that does not matter.`,
    fix,
  );
}

function keyFindings(leaf: X509Certificate, path: string): Finding[] {
  try {
    if (leaf.checkPrivateKey(createPrivateKey(readFileSync(path)))) return [];
    return [
      error(
        'certificate-key',
        `The private key ${path} does not belong to the certificate.`,
        'tls_private_key_path: the file privkey.pem beside the certificate',
      ),
    ];
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    return [
      error(
        'certificate-key',
        `The private key ${path} cannot be used: ${reason}.`,
        `ls -l ${path}, and let the user of the server read it`,
      ),
    ];
  }
}

const certificatesIn = (pem: string) =>
  [...pem.matchAll(/-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g)].map(
    ([text]) => new X509Certificate(text),
  );
