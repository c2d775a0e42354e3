import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import type { OpenDatabase } from '../../../test/support/databases/databases.ts';
import {
  type ConfigurationOverrides,
  startTestServer,
  type TestServer,
  type TestUser,
} from '../../../test/support/servers/server.ts';
import { systemClock } from '../../kernel/clock.ts';

type MediaOptions = NonNullable<ConfigurationOverrides['media']>;

interface Upload {
  readonly type?: string;
  readonly name?: string;
}

/**
 * Starts servers that store media in folders of their own. Called inside of a `describe`, after whose tests the servers
 * are stopped and the folders removed.
 */
export function mediaServersForTests(database: OpenDatabase['kind']) {
  const folder = mkdtempSync(join(tmpdir(), 'hearth-media-'));
  const running: TestServer[] = [];
  const stopAll = async () => {
    for (const server of running.splice(0)) await server.stop();
  };
  after(async () => {
    await stopAll();
    rmSync(folder, { recursive: true, force: true });
  });
  return {
    stopAll,
    /** Starts a server with a user. */
    async start(media: MediaOptions = {}, otherConfig: ConfigurationOverrides = {}) {
      const clock = shiftedClock();
      const store = mkdtempSync(join(folder, 'store-'));
      const config = { ...otherConfig, media: { media_store_path: store, ...media } };
      const server = await startTestServer({ database, clock, config });
      running.push(server);
      return { server, clock, store, user: await server.register('anna') };
    },
  };
}

/** Uploads a file; by default of the type `image/png`. */
export function upload(server: TestServer, { token }: TestUser, body: unknown, options: Upload = {}) {
  const headers = { 'content-type': options.type ?? 'image/png' };
  const query = options.name === undefined ? {} : { filename: options.name };
  return server.api('POST', '/_matrix/media/v3/upload', { token, body, headers, query });
}

/** Uploads a file. @returns its server name and media id, as in paths */
export async function uploadedMedia(
  server: TestServer,
  user: TestUser,
  body: unknown,
  options: Upload = {},
): Promise<string> {
  const { status, body: answer } = await upload(server, user, body, options);
  assert.equal(status, 200, JSON.stringify(answer));
  return mediaOf(answer);
}

/** Returns the server name and media id in a response. */
export const mediaOf = (answer: Record<string, unknown>): string =>
  String(answer['content_uri']).slice('mxc://'.length);

/** Sends a request, and reads the whole body, so that no request is open when the server stops. */
export async function get(
  server: TestServer,
  path: string,
  user?: TestUser,
  method = 'GET',
): Promise<Response> {
  const headers: Record<string, string> = user ? { authorization: `Bearer ${user.token}` } : {};
  const response = await fetch(server.baseUrl + path, { method, headers });
  const body = await response.arrayBuffer();
  return new Response(body, response);
}

export const download = (server: TestServer, user: TestUser, media: string): Promise<Response> =>
  get(server, `/_matrix/client/v1/media/download/${media}`, user);

/** Returns the status and the error code of a response. */
export const statusAndErrcode = async (response: Response): Promise<string> =>
  `${response.status} ${((await response.json()) as { errcode: string }).errcode}`;

/** Returns the machine's clock with a time that a test can advance. Timers are not advanced. */
function shiftedClock() {
  let shift = 0;
  return {
    now: () => systemClock.now() + shift,
    monotonic: () => systemClock.monotonic() + shift,
    setTimer: systemClock.setTimer,
    advance(milliseconds: number) {
      shift += milliseconds;
    },
  };
}
