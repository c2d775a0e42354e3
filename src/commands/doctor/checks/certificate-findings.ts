import { error, type Finding, ok, warning } from '../finding.ts';

const day = 24 * 60 * 60 * 1_000;

/**
 * A certificate should be renewed this many days before its end. Usual tools renew certificates 30 days before the end.
 */
const warningDays = 14;

/** A certificate that was read from a file or presented by a server. */
export interface FoundCertificate {
  /** Names with their kind, for example `DNS:example.org`. */
  readonly names: readonly string[];
  readonly isForName: boolean;
  /** Milliseconds since the epoch. */
  readonly validFrom: number;
  readonly validTo: number;
  /** Code of OpenSSL for a chain that is not trusted; `undefined` when it is trusted, or was not checked. */
  readonly chainProblem: string | undefined;
}

/**
 * Reports the problems of a certificate.
 * @param where the file or the address, as the subject of the messages
 * @param name the name that the certificate must be valid for
 */
export function certificateFindings(
  where: string,
  name: string,
  certificate: FoundCertificate,
  now: number,
): Finding[] {
  const findings = [
    ...timeFindings(where, certificate, now),
    ...(certificate.isForName
      ? []
      : [
          error(
            'certificate-name',
            `${where}: the certificate is for ${certificate.names.map((text) => text.replace(/^(DNS|IP Address):/, '')).join(', ') || 'no name'}, and not for ${name}.`,
            `certbot certonly -d ${name}`,
          ),
        ]),
    ...chainFindings(where, certificate),
  ];
  if (findings.length > 0) return findings;
  const days = Math.floor((certificate.validTo - now) / day);
  return [ok('certificate', `${where}: the certificate is valid for ${name}, for ${days} more days.`)];
}

function timeFindings(where: string, { validFrom, validTo }: FoundCertificate, now: number): Finding[] {
  const renew = 'certbot renew, then: systemctl reload hearth (or the reverse proxy)';
  const date = (time: number) => new Date(time).toISOString().slice(0, 10);
  if (validTo <= now) {
    return [error('certificate-expired', `${where}: the certificate expired on ${date(validTo)}.`, renew)];
  }
  if (validFrom > now) {
    return [
      error(
        'certificate-early',
        `${where}: the certificate is not valid before ${date(validFrom)}. Is the clock of this machine right?`,
        'timedatectl set-ntp true',
      ),
    ];
  }
  if (validTo - now > warningDays * day) return [];
  return [
    warning(
      'certificate-expires',
      `${where}: the certificate expires on ${date(validTo)}, in ${daysText(validTo - now)}.`,
      renew,
    ),
  ];
}

const daysText = (time: number) => {
  const days = Math.floor(time / day);
  return days === 1 ? '1 day' : `${days} days`;
};

/** Codes of OpenSSL for a chain whose intermediate certificates are missing. */
const incomplete = new Set([
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_GET_ISSUER_CERT',
]);

function chainFindings(where: string, { chainProblem }: FoundCertificate): Finding[] {
  if (chainProblem === undefined) return [];
  if (incomplete.has(chainProblem)) {
    return [
      error(
        'certificate-chain',
        `${where}: no trusted authority is found behind the certificate (${chainProblem}). Usually the intermediate certificates are missing; other servers and clients refuse it.`,
        'tls_certificate_path: the file fullchain.pem instead of cert.pem (for nginx: ssl_certificate)',
      ),
    ];
  }
  return [
    error(
      'certificate-untrusted',
      `${where}: the certificate is not signed by a trusted authority (${chainProblem}). Other servers and clients refuse it.`,
      'get a certificate of a recognised authority, for instance: certbot certonly',
    ),
  ];
}
