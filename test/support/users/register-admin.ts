import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import type { TestServer } from '../servers/server.ts';
import { TestClient } from './test-client.ts';

/** The path of registration by shared secret. */
export const adminRegistrationPath = '/_synapse/admin/v1/register';

/**
 * Returns the body of a registration by shared secret for an administrator with the password `password`.
 * @param nonce from a GET of the same path
 * @param secret the option `registration_shared_secret`
 */
export function adminRegistrationBody(username: string, nonce: unknown, secret = 'shared secret') {
  const text = `${nonce}\0${username}\0password\0admin`;
  const mac = createHmac('sha1', secret).update(text).digest('hex');
  return { nonce, username, password: 'password', admin: true, mac };
}

/** Registers an administrator with the shared secret of all test servers. */
export async function registerAdmin(server: TestServer): Promise<TestClient> {
  const { nonce } = (await server.api('GET', adminRegistrationPath)).body;
  const answer = await server.api('POST', adminRegistrationPath, {
    body: adminRegistrationBody('admin', nonce),
  });
  assert.equal(answer.status, 200, answer.raw);
  return new TestClient(server, {
    userId: String(answer.body['user_id']),
    deviceId: String(answer.body['device_id']),
    token: String(answer.body['access_token']),
  });
}
