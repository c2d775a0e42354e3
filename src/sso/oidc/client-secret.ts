import { createPrivateKey, type KeyObject } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { JWTHeaderParameters } from 'jose';
import type { ClientAuth } from 'openid-client';
import type { Clock } from '../../kernel/clock.ts';
import type { OidcProviderConfig } from '../options/oidc.ts';

/** Seconds that a signed token is valid in place of a secret. */
const validity = 3600;

/**
 * Returns how this server authenticates at the token endpoint: not at all, by the secret, or by a new signed token,
 * which Apple requires.
 * @throws Error when the key cannot be used
 */
export async function clientAuthentication(config: OidcProviderConfig, clock: Clock): Promise<ClientAuth> {
  const { ClientSecretPost, None } = await import('openid-client');
  if (config.client_auth_method === 'none') return None();
  const secret = await clientSecret(config, clock);
  return config.client_auth_method === 'client_secret_post'
    ? ClientSecretPost(secret)
    : secretByBasic(secret);
}

/**
 * Returns the authentication that sends the client id and the secret in the `Authorization` header (Basic), both
 * form-encoded. Hyphens and other characters that need no encoding stay, because many providers do not decode them.
 * Source: RFC 6749, section 2.3.1.
 */
function secretByBasic(secret: string): ClientAuth {
  return (_server, { client_id }, _body, headers) => {
    const credentials = `${formEncoded(client_id)}:${formEncoded(secret)}`;
    headers.set('authorization', `Basic ${Buffer.from(credentials).toString('base64')}`);
  };
}

const formEncoded = (text: string) => new URLSearchParams({ '': text }).toString().slice(1);

async function clientSecret(
  { client_id, client_secret, client_secret_jwt_key: key, issuer }: OidcProviderConfig,
  clock: Clock,
): Promise<string> {
  if (key === null) return client_secret ?? '';
  const { SignJWT } = await import('jose');
  const now = Math.floor(clock.now() / 1000);
  const claims = { iat: now, exp: now + validity, aud: issuer, sub: client_id, ...key.jwt_payload };
  return new SignJWT(claims)
    .setProtectedHeader(key.jwt_header as unknown as JWTHeaderParameters)
    .sign(signingKey(key));
}

/**
 * Checks the key of `client_secret_jwt_key`.
 * @throws Error when it cannot be read, or is not a private key in PEM form
 */
export function checkSigningKey({ client_secret_jwt_key: key }: OidcProviderConfig): void {
  if (key !== null) signingKey(key);
}

function signingKey({ key, key_file }: NonNullable<OidcProviderConfig['client_secret_jwt_key']>): KeyObject {
  const pem = key ?? readFileSync(key_file ?? '', 'utf8');
  try {
    return createPrivateKey(pem);
  } catch {
    throw new Error(
      `${key === null ? `the file ${key_file}` : 'the value of key'} is not a private key in PEM form`,
    );
  }
}
