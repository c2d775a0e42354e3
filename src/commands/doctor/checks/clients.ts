import { OutboundError } from '../../../kernel/outbound/index.ts';
import { parseServerName } from '../../../protocol/index.ts';
import type { Examination } from '../examination.ts';
import { error, type Finding, note, ok, warning } from '../finding.ts';
import { checkServedCertificate } from './federation.ts';
import { checkAddresses, isLocalName } from './public-names.ts';
import { describeAnswer, fixOf, jsonOf, type PublicAnswer, requestUrl } from './public-requests.ts';

/** Returns the URL of the server for clients. */
export function clientsUrl({ configuration }: Pick<Examination, 'configuration'>): URL {
  const { public_baseurl: given, server_name: name } = configuration.server;
  const { host = name, kind } = parseServerName(name) ?? {};
  return new URL(given ?? `https://${kind === 'ipv6' ? `[${host}]` : host}/`);
}

/**
 * Checks that clients find this server by a user id, and reach it.
 * @param isRunning whether the server answers at its own listener; otherwise only names and certificates are checked
 */
export async function checkClients(
  examination: Examination,
  isRunning: boolean,
): Promise<readonly Finding[]> {
  const { server_name: serverName, public_baseurl: given } = examination.configuration.server;
  const url = clientsUrl(examination);
  const host = url.hostname.replace(/^\[|\]$/g, '');
  if (isLocalName(host)) {
    return [note('clients-local', `Only clients on this machine can reach ${url}.`)];
  }
  const isSecure = url.protocol === 'https:';
  const names = await checkAddresses(host, examination);
  const port = url.port === '' ? (isSecure ? 443 : 80) : Number(url.port);
  const certificates = isSecure
    ? await checkServedCertificate({ host, port, tlsName: tlsNameOf(host) }, 'clients', examination)
    : [
        warning(
          'clients-without-tls',
          `public_baseurl (${url}) has no TLS: passwords and messages cross the network in the clear.`,
          `public_baseurl: https://${url.host}/`,
        ),
      ];
  const findings = [...names, ...certificates];
  if (!isRunning || findings.some(({ level }) => level === 'error')) return findings;
  findings.push(...(await checkVersions(url, port, examination)));
  if (!isLocalName(serverName))
    findings.push(...(await checkClientWellKnown(serverName, given, url, examination)));
  return findings;
}

const tlsNameOf = (host: string) => (/^[\d.]+$|:/.test(host) ? undefined : host);

async function checkVersions(base: URL, port: number, examination: Examination): Promise<Finding[]> {
  const url = new URL(`${base.pathname.replace(/\/$/, '')}/_matrix/client/versions`, base);
  const answer = await requestUrl(examination, url);
  if (!Array.isArray(jsonOf(answer)?.['versions'])) {
    return [
      error(
        'clients-unreachable',
        `${url} answers ${describeAnswer(answer)}.`,
        fixOf(answer, port, '/_matrix'),
      ),
    ];
  }
  if (!allowsWebClients(answer)) return [withoutCors('clients-cors', url)];
  return [ok('clients', `Clients reach the server at ${base}.`)];
}

async function checkClientWellKnown(
  serverName: string,
  configuredUrl: string | null,
  base: URL,
  examination: Examination,
): Promise<Finding[]> {
  const parts = parseServerName(serverName);
  if (parts?.kind !== 'dns') return [];
  const url = new URL(`https://${parts.host}/.well-known/matrix/client`);
  const answer = await requestUrl(examination, url);
  const homeserver = jsonOf(answer)?.['m.homeserver'] as { base_url?: unknown } | undefined;
  const publishedUrl = typeof homeserver?.base_url === 'string' ? URL.parse(homeserver.base_url) : null;
  const isMissing = answer instanceof OutboundError || answer.status !== 200;
  if (isMissing && base.hostname === parts.host) {
    return [
      note(
        'well-known-client',
        `${url} answers ${describeAnswer(answer)}; clients then try https://${parts.host}/, which is the right server.`,
        ...(configuredUrl === null ? [`public_baseurl: https://${parts.host}/`] : []),
      ),
    ];
  }
  if (publishedUrl === null) {
    return [
      error(
        'well-known-client',
        `Clients cannot find the server by user ids: ${url} ${isMissing ? `answers ${describeAnswer(answer)}` : 'contains no m.homeserver with a base_url'}.`,
        `let ${parts.host} pass /.well-known/matrix to this server, or serve there: {"m.homeserver": {"base_url": "${base}"}}`,
      ),
    ];
  }
  if (publishedUrl.host !== base.host || publishedUrl.protocol !== base.protocol) {
    return [
      error(
        'well-known-client',
        `${url} leads clients to ${publishedUrl}, and public_baseurl is ${configuredUrl ?? `not set, which means ${base}`}.`,
        `public_baseurl: ${publishedUrl}`,
      ),
    ];
  }
  if (!allowsWebClients(answer)) return [withoutCors('well-known-cors', url)];
  return [ok('well-known-client', `${url} leads clients to ${publishedUrl}.`)];
}

function allowsWebClients(answer: PublicAnswer): boolean {
  return !(answer instanceof OutboundError) && answer.headers['access-control-allow-origin'] === '*';
}

const withoutCors = (name: string, url: URL) =>
  error(
    name,
    `Clients in browsers cannot read ${url}: the header Access-Control-Allow-Origin: * is missing or given twice.`,
    'for a file of a web server, nginx: add_header Access-Control-Allow-Origin *; before this server, the reverse proxy must not change that header',
  );
