import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { operations } from '../support/matrix-spec/matrix-spec.ts';
import { startTestServer, type TestServer } from '../support/servers/server.ts';

/**
 * Operations of the client-server API that the server of this test does not serve, by the feature that is missing. None
 * of these operations is about rooms, messages, the directory, profiles, presence, sync, search, spaces, relations,
 * reports, tags or account data.
 */
const notServed: Readonly<Record<string, readonly string[]>> = {
  'single sign-on and OAuth 2.0': ['getAuthMetadata', 'redirectToIdP', 'redirectToSSO'],
  // This server is not a policy server; an operator who runs one serves the file elsewhere.
  'policy servers': ['getWellknownPolicy'],
};

/** Groups of operations (files of the specification). The server must serve every operation of these groups. */
const completeGroups =
  /^(account-data|create_room|directory|event_context|inviting|joining|kicking|knocking|leaving|list_|message_pagination|notifications|old_sync|openid|peeking_events|presence|profile|pusher|pushrules|read_markers|receipts|redaction|relations|report_content|room_|rooms|search|space_hierarchy|sync|tags|third_party_membership|threads_list|typing|users|banning|filter|mutual_rooms|voip)/;

describe('the client-server API', () => {
  let server: TestServer;
  before(async () => {
    const login_via_existing_session = { enabled: true, require_ui_auth: true, token_timeout: 60_000 };
    server = await startTestServer({
      database: 'sqlite',
      config: {
        accounts: { login_via_existing_session },
        urlPreviews: { url_preview_enabled: true, url_preview_ip_range_blacklist: [] },
      },
    });
  });
  after(() => server.stop());

  it('serves every operation of the client-server API except those in the list of missing features', async () => {
    const unserved: string[] = [];
    for (const { api, operationId, method, path } of operations()) {
      if (api === 'client-server' && !(await isServed(method, path))) unserved.push(operationId);
    }
    assert.deepEqual(unserved.sort(), Object.values(notServed).flat().sort());
  });

  it('lists no operation on rooms, messages, profiles or account data as a missing feature', () => {
    const required = operations().filter(
      ({ api, group }) => api === 'client-server' && completeGroups.test(group),
    );
    assert.ok(required.length >= 80, `only ${required.length} operations are required`);
    const unservedIds = new Set(Object.values(notServed).flat());
    assert.deepEqual(
      required.map(({ operationId }) => operationId).filter((operationId) => unservedIds.has(operationId)),
      [],
    );
  });

  /**
   * Whether there is a route for the operation. The request has invalid parameters, so that the route may answer an
   * error.
   */
  async function isServed(method: string, template: string): Promise<boolean> {
    const path = template.replaceAll(/\{[^}]*\}/g, 'x');
    const response = await fetch(server.baseUrl + path, { method, redirect: 'manual' });
    const body = (await response.json().catch(() => ({}))) as { errcode?: string };
    return body.errcode !== 'M_UNRECOGNIZED';
  }
});
