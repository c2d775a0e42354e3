import { readFileSync } from 'node:fs';
import { type Static, Type } from 'typebox';
import { Value } from 'typebox/value';

/** Checked options of S3-compatible storage. */
export interface S3Options {
  readonly region: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken: string | undefined;
  readonly storageClass: string | undefined;
  /** Returns the URL of an object. */
  urlOf(path: string): string;
}

const text = Type.Optional(Type.String({ minLength: 1 }));

const schema = Type.Object({
  bucket: Type.String({ minLength: 1 }),
  region_name: text,
  endpoint_url: Type.Optional(Type.String({ pattern: '^https?://[^/?#]+/?$' })),
  access_key_id: text,
  access_key_id_path: text,
  secret_access_key: text,
  secret_access_key_path: text,
  session_token: text,
  prefix: Type.Optional(Type.String()),
  storage_class: text,
  path_style: Type.Optional(Type.Boolean()),
});

type Config = Static<typeof schema>;

/**
 * Reads the options of S3-compatible storage. Credentials come from the options, from files, or from the variables
 * `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN`.
 * @throws Error that names the option
 */
export function s3Options(
  config: Readonly<Record<string, unknown>>,
  environment: Readonly<Record<string, string | undefined>>,
): S3Options {
  const presentOptions = Object.fromEntries(Object.entries(config).filter(([, value]) => value !== null));
  const [problem] = Value.Errors(schema, presentOptions);
  if (problem !== undefined)
    throw new Error(
      `config of the s3 storage${problem.instancePath.replaceAll('/', '.')}: ${problem.message}`,
    );
  const options = presentOptions as Config;
  const configuredKeyId = credential(options, 'access_key_id');
  const accessKeyId = configuredKeyId ?? environment['AWS_ACCESS_KEY_ID'];
  const secretAccessKey = credential(options, 'secret_access_key') ?? environment['AWS_SECRET_ACCESS_KEY'];
  if (!accessKeyId || !secretAccessKey)
    throw new Error(
      'config of the s3 storage: access_key_id and secret_access_key are needed, here, in files, or in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY',
    );
  const region = options.region_name ?? environment['AWS_REGION'] ?? 'us-east-1';
  const base = objectsUrl(options, region);
  return {
    region,
    accessKeyId,
    secretAccessKey,
    // The token of the environment belongs to the key of the environment.
    sessionToken:
      options.session_token ?? (configuredKeyId === undefined ? environment['AWS_SESSION_TOKEN'] : undefined),
    storageClass: options.storage_class,
    urlOf: (path) => base + path.split('/').map(encodeURIComponent).join('/'),
  };
}

/** Returns the common beginning of the URLs of all objects; the path of an object is appended to it. */
function objectsUrl({ bucket, endpoint_url, path_style, prefix = '' }: Config, region: string): string {
  const endpoint = new URL(endpoint_url ?? `https://s3.${region}.amazonaws.com`);
  const isPathStyle = path_style ?? endpoint_url !== undefined;
  const host = isPathStyle ? endpoint.host : `${bucket}.${endpoint.host}`;
  const start = prefix.replace(/^\/+/, '').split('/').map(encodeURIComponent).join('/');
  return `${endpoint.protocol}//${host}/${isPathStyle ? `${encodeURIComponent(bucket)}/` : ''}${start}`;
}

function credential(options: Config, name: 'access_key_id' | 'secret_access_key'): string | undefined {
  const path = options[`${name}_path`];
  return options[name] ?? (path === undefined ? undefined : readFileSync(path, 'utf8').trim());
}
