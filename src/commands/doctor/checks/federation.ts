import type { Endpoint } from '../../../federation-client/index.ts';
import { OutboundError, servedCertificates } from '../../../kernel/outbound/index.ts';
import type { Examination } from '../examination.ts';
import { error, type Finding, note, ok } from '../finding.ts';
import { certificateFindings } from './certificate-findings.ts';
import { checkFederationNames, isLocalName } from './public-names.ts';
import { describeAnswer, fixOf, jsonOf, requestEndpoint } from './public-requests.ts';
import { ownSigningKeys } from './signing-keys.ts';

/**
 * Checks that other servers reach this server by its name.
 * @param runs whether the server answers at its own listener; otherwise only names and certificates are checked
 */
export async function checkFederation(examination: Examination, runs: boolean): Promise<readonly Finding[]> {
  const { server, http, federationClient } = examination.configuration;
  const serves = http.listeners.some(({ resources }) =>
    resources.some(({ names }) => names.includes('federation')),
  );
  if (!serves || federationClient.federation_domain_whitelist?.length === 0) {
    return [note('federation-off', 'Federation is off in this configuration, so it is not checked.')];
  }
  if (isLocalName(server.server_name)) {
    return [
      note('federation-local', `Other servers cannot reach a server with the name ${server.server_name}.`),
    ];
  }
  const { findings, endpoints } = await checkFederationNames(examination, runs);
  const answers = await Promise.all(endpoints.map((endpoint) => checkEndpoint(endpoint, examination, runs)));
  return [...findings, ...answers.flat()];
}

async function checkEndpoint(
  endpoint: Endpoint,
  examination: Examination,
  runs: boolean,
): Promise<readonly Finding[]> {
  const certificates = await checkServedCertificate(endpoint, 'federation', examination);
  if (!runs || certificates.some(({ level }) => level === 'error')) return certificates;
  return [...certificates, ...(await checkPaths(endpoint, examination))];
}

/** Checks the certificate that each address of an endpoint presents. */
export async function checkServedCertificate(
  { host, port, tlsName }: Pick<Endpoint, 'host' | 'port' | 'tlsName'>,
  what: 'federation' | 'clients',
  { resolver, tls, clock, configuration }: Examination,
): Promise<readonly Finding[]> {
  const deps = { resolver, tls, clock, proxies: configuration.outbound };
  const answers = await servedCertificates({ host, port, tlsName }, deps).catch((cause: unknown) => {
    // Another check reports a name without addresses.
    if (cause instanceof OutboundError && cause.failure === 'unknown-host') return [];
    throw cause;
  });
  return answers.flatMap(({ address, result }) => {
    const where =
      address === undefined || address === host ? `${host}:${port}` : `${host}:${port} (${address})`;
    if (!(result instanceof OutboundError)) {
      return certificateFindings(where, tlsName ?? host, result, clock.now());
    }
    if (noRoute.test(String((result.cause as { code?: string } | undefined)?.code))) {
      return [note(`${what}-no-route`, `This machine has no route to ${where}, so it is not checked.`)];
    }
    return [
      error(
        `${what}-unreachable`,
        `${where} does not answer: ${result.message}.`,
        fixOf(result, port, '/_matrix'),
      ),
    ];
  });
}

/** Error codes of connections that this machine has no route for, for instance because it has no IPv6. */
const noRoute = /^(ENETUNREACH|EHOSTUNREACH|EADDRNOTAVAIL)$/;

/** Sends the requests that other servers send: for the version, for the keys, and to a path with escaped characters. */
async function checkPaths(endpoint: Endpoint, examination: Examination): Promise<readonly Finding[]> {
  const { server_name: serverName } = examination.configuration.server;
  const request = (path: string) => requestEndpoint(examination, endpoint, path);
  const where = `${endpoint.host}:${endpoint.port}`;
  const version = await request('/_matrix/federation/v1/version');
  if (typeof (jsonOf(version)?.['server'] as { name?: unknown } | undefined)?.name !== 'string') {
    const text = `Requests of other servers to ${where} are answered by ${describeAnswer(version)}.`;
    return [error('federation-unreachable', text, fixOf(version, endpoint.port, '/_matrix'))];
  }
  const keys = await request('/_matrix/key/v2/server');
  const published = jsonOf(keys);
  if (published === undefined || published['verify_keys'] === undefined) {
    const text = `The keys of this server cannot be fetched at ${where}: the answer is ${describeAnswer(keys)}.`;
    return [error('federation-keys', text, fixOf(keys, endpoint.port, '/_matrix/key'))];
  }
  const findings = [...keyFindings(where, serverName, published, examination)];
  // The slash in the room id must not be decoded on the way: signatures would not match.
  const escaped = await request('/_matrix/federation/v1/state_ids/%21doctor%2Fdoctor?event_id=%24doctor');
  if (!(escaped instanceof OutboundError) && escaped.status !== 401 && escaped.status !== 403) {
    findings.push(
      error(
        'federation-paths',
        `The reverse proxy at ${where} changes paths (an escaped slash arrives as a plain one), so signatures of other servers do not match.`,
        'nginx: proxy_pass without a path or slash behind the port, as in proxy_pass http://127.0.0.1:8008;',
      ),
    );
  }
  return findings.length > 0 ? findings : [ok('federation', `Other servers reach this server at ${where}.`)];
}

function* keyFindings(
  where: string,
  serverName: string,
  published: Readonly<Record<string, unknown>>,
  examination: Examination,
): Generator<Finding> {
  const { server_name: name, valid_until_ts: validUntil } = published;
  if (name !== serverName) {
    yield error(
      'federation-other-server',
      `The server ${String(name)} answers at ${where}, and not ${serverName}.`,
      'let the DNS records, /.well-known/matrix/server and the reverse proxy lead to this server',
    );
    return;
  }
  const current = published['verify_keys'] as Readonly<Record<string, { key?: unknown }>>;
  const unpublished = ownSigningKeys(examination).filter(
    ({ keyId, publicKey }) => current[keyId]?.key !== publicKey.base64,
  );
  if (unpublished.length > 0) {
    yield error(
      'federation-other-key',
      `The server at ${where} does not publish the key ${unpublished[0]!.keyId} of signing_key_path: another server with this name answers, or the running one was not restarted after a change of the key.`,
      'systemctl restart hearth; if that does not help, stop the other server',
    );
  }
  if (typeof validUntil === 'number' && validUntil < examination.clock.now()) {
    yield error(
      'federation-keys-expired',
      `The keys published at ${where} are not valid any more. The cause may be a cache between this server and others, or a wrong clock.`,
      'do not let the reverse proxy cache /_matrix; timedatectl set-ntp true',
    );
  }
}
