import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import type { TestServer } from '../servers/server.ts';
import { Person } from './person.ts';

/** Registers an administrator with the shared secret that every test server has. */
export async function registerAdmin(server: TestServer): Promise<Person> {
  const path = '/_synapse/admin/v1/register';
  const { nonce } = (await server.api('GET', path)).body;
  const mac = createHmac('sha1', 'shared secret').update(`${nonce}\0admin\0password\0admin`).digest('hex');
  const body = { nonce, username: 'admin', password: 'password', admin: true, mac };
  const answer = await server.api('POST', path, { body });
  assert.equal(answer.status, 200, answer.raw);
  return new Person(server, {
    userId: String(answer.body['user_id']),
    deviceId: String(answer.body['device_id']),
    token: String(answer.body['access_token']),
  });
}
