import assert from 'node:assert/strict';
import type { TestServer } from '../../../test/support/servers/server.ts';
import { TestClient } from '../../../test/support/users/test-client.ts';
import type { Administration } from './administration.ts';

/**
 * Requests of users and of the administrator about media.
 * @param running returns the server; called by each request, because the server is started before the tests
 */
export function mediaCalls(running: () => { readonly server: TestServer; readonly admin: Administration }) {
  let users = 0;
  const listOf = async (user: TestClient, query: Record<string, string | number> = {}) => {
    const body = await running().admin.do('GET', `/v1/users/${user.id}/media`, undefined, query);
    return body as unknown as {
      media: { media_id: string; [field: string]: unknown }[];
      total: number;
      next_token?: number;
    };
  };
  return {
    newUser: () => TestClient.register(running().server, `user${users++}`),
    /** @returns the media id */
    async upload(user: TestClient, content: string, filename = 'a.txt') {
      const answer = await running().server.api('POST', '/_matrix/media/v3/upload', {
        token: user.token,
        body: content,
        query: { filename },
        headers: { 'content-type': 'text/plain' },
      });
      assert.equal(answer.status, 200, answer.raw);
      return String(answer.body['content_uri']).slice('mxc://test/'.length);
    },
    /** @returns the status of the response */
    async download(user: TestClient, mediaId: string) {
      const path = `/_matrix/client/v1/media/download/test/${mediaId}`;
      return (await running().server.api('GET', path, { token: user.token })).status;
    },
    /** Lists the media of a user by the admin API. */
    listOf,
    idsOf: async (user: TestClient, query: Record<string, string | number> = {}) =>
      (await listOf(user, query)).media.map(({ media_id }) => media_id),
  };
}
