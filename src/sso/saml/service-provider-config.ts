import { accessSync, constants, readFileSync } from 'node:fs';
import { isAbsolute, resolve } from 'node:path';
import { parse } from 'yaml';
import { fileProblem } from '../../kernel/config/index.ts';
import { StartFailure } from '../../kernel/start-failure.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../../protocol/index.ts';
import type { SsoConfig } from '../config.ts';

/** The fields of `sp_config` that this server uses, in the format of pysaml2. */
export interface ServiceProviderConfig {
  /** Files with the metadata of identity providers. */
  readonly local: readonly string[];
  /** URLs of the metadata of identity providers. */
  readonly remote: readonly string[];
  /** Maximum difference between the clocks of an identity provider and of this server, in seconds. */
  readonly acceptedTimeDiff: number;
  /** Whether logins may begin at an identity provider. */
  readonly allowUnsolicited: boolean;
  /** Whether each assertion must have its own signature; by default a signed response suffices. */
  readonly requiresSignedAssertions: boolean;
  /** Whether each response must have its own signature; by default a signed assertion suffices. */
  readonly requiresSignedResponses: boolean;
  /** The entity id of this server; by default the URL of its metadata. */
  readonly entityId: string | undefined;
  /** The key that signs requests and decrypts assertions, in PEM form. */
  readonly privateKey: string | undefined;
  /** The certificate of `privateKey`, in PEM form; the metadata of this server contains it. */
  readonly certificate: string | undefined;
}

/**
 * Returns `sp_config`, or what the file at `config_path` contains; `undefined` when neither is given.
 * @throws StartFailure when the file cannot be used
 */
export function serviceProviderOf({
  sp_config: given,
  config_path: path,
}: NonNullable<SsoConfig['saml2_config']>): JsonObject | undefined {
  if (given !== null) return given as unknown as JsonObject;
  if (path === null) return undefined;
  try {
    const content: unknown = parse(readFileSync(path, 'utf8'));
    if (!isJsonObject(content as JsonValue)) throw new Error('it contains no mapping');
    return content as JsonObject;
  } catch (error) {
    throw new StartFailure(`saml2_config.config_path: cannot use ${path}: ${(error as Error).message}`);
  }
}

/**
 * Checks that the metadata files of the configuration can be read. Their content is read at logins.
 * @throws StartFailure when a file cannot be read
 */
export function checkMetadataFiles({ local }: Pick<ServiceProviderConfig, 'local'>): void {
  for (const file of local) {
    try {
      accessSync(file, constants.R_OK);
    } catch (error) {
      throw new StartFailure(
        `saml2_config: the metadata file ${file} cannot be read: ${fileProblem(error)}`,
        { cause: error },
      );
    }
  }
}

/**
 * Reads `sp_config` and the key files that it names.
 * @throws Error when a file cannot be read; StartFailure for an invalid `accepted_time_diff`
 */
export function readServiceProvider(given: JsonObject): ServiceProviderConfig {
  const metadata = objectIn(given, 'metadata');
  const sp = objectIn(objectIn(given, 'service'), 'sp');
  const fileOf = (name: string) =>
    typeof given[name] === 'string' ? readFileSync(given[name], 'utf8') : undefined;
  const remote = listOf(metadata['remote']).map((entry) => (isJsonObject(entry) ? entry['url'] : entry));
  return {
    local: listOf(metadata['local'])
      .filter((path) => typeof path === 'string')
      .map(absolute),
    remote: remote.filter((url) => typeof url === 'string'),
    acceptedTimeDiff: secondsOf(given['accepted_time_diff'] ?? 0),
    allowUnsolicited: sp['allow_unsolicited'] === true,
    requiresSignedAssertions: sp['want_assertions_signed'] === true,
    requiresSignedResponses: sp['want_response_signed'] === true,
    entityId: typeof given['entityid'] === 'string' ? given['entityid'] : undefined,
    privateKey: fileOf('key_file'),
    certificate: fileOf('cert_file'),
  };
}

/**
 * Returns the value if it is a valid number of seconds. This is checked here, because the schema of options does not
 * check the file at `config_path`. @throws StartFailure
 */
function secondsOf(value: JsonValue): number {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value;
  throw new StartFailure('saml2_config: accepted_time_diff must be a whole number of seconds, 0 or more');
}

const objectIn = (object: JsonObject, name: string): JsonObject => {
  const value = object[name];
  return isJsonObject(value) ? value : {};
};

const listOf = (value: JsonValue | undefined): readonly JsonValue[] => (Array.isArray(value) ? value : []);

const absolute = (path: string) => (isAbsolute(path) ? path : resolve(path));
