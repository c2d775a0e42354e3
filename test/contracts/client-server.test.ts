import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { operations } from '../support/matrix-spec.ts';
import { startTestServer, type TestServer } from '../support/server.ts';

/** Operations of the client-server API that are not served, by what they wait for. */
const waiting: Readonly<Record<string, readonly string[]>> = {
  'thumbnails and previews': [
    'getContentThumbnail',
    'getContentThumbnailAuthed',
    'getUrlPreview',
    'getUrlPreviewAuthed',
  ],
  'mail addresses and phone numbers of accounts': [
    'add3PID',
    'bind3PID',
    'delete3pidFromAccount',
    'post3PIDs',
    'requestTokenTo3PIDEmail',
    'requestTokenTo3PIDMSISDN',
    'requestTokenToRegisterEmail',
    'requestTokenToRegisterMSISDN',
    'requestTokenToResetPasswordEmail',
    'requestTokenToResetPasswordMSISDN',
    'unbind3pidFromAccount',
  ],
  'registration by token': ['registrationTokenValidity'],
  'single sign-on and OAuth 2.0': ['generateLoginToken', 'getAuthMetadata', 'redirectToIdP', 'redirectToSSO'],
  'push gateways': ['getPushers', 'postPusher'],
  'application services': [
    'getProtocolMetadata',
    'getProtocols',
    'pingAppservice',
    'queryLocationByAlias',
    'queryLocationByProtocol',
    'queryUserByID',
    'queryUserByProtocol',
  ],
  // This server is none; who runs one beside it serves the file.
  'policy servers': ['getWellknownPolicy'],
};

describe('the client-server API', () => {
  let server: TestServer;
  before(async () => {
    server = await startTestServer({ database: 'sqlite' });
  });
  after(() => server.stop());

  it('is served, but for what is listed here', async () => {
    const unserved: string[] = [];
    for (const { api, operationId, method, path } of operations()) {
      if (api === 'client-server' && !(await isServed(method, path))) unserved.push(operationId);
    }
    assert.deepEqual(unserved.sort(), Object.values(waiting).flat().sort());
  });

  /** Whether there is a route: whatever else the answer to a senseless request may be. */
  async function isServed(method: string, template: string): Promise<boolean> {
    const path = template.replaceAll(/\{[^}]*\}/g, 'x');
    const response = await fetch(server.baseUrl + path, { method, redirect: 'manual' });
    const body = (await response.json().catch(() => ({}))) as { errcode?: string };
    return body.errcode !== 'M_UNRECOGNIZED';
  }
});
