/**
 * Checks what every endpoint that reads shows to users in every relation to a room, for every history
 * visibility: all that they may see and nothing else.
 */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { endpoints } from './read-access/endpoints.ts';
import { marksIn, playScenario, type Scenario, viewerRoles, visibilities } from './read-access/scenario.ts';
import { selectedDatabases } from './support/databases/databases.ts';
import { operations } from './support/matrix-spec/matrix-spec.ts';
import { startTestServer, type TestServer } from './support/servers/server.ts';

for (const database of selectedDatabases(import.meta.url)) {
  describe(`read access, on ${database}`, () => {
    let server: TestServer;
    const scenarios: Scenario[] = [];
    before(async () => {
      server = await startTestServer({
        database,
        config: {
          accounts: { allow_guest_access: true },
          rooms: { max_event_delay_duration: 86_400_000 },
        },
      });
      for (const visibility of visibilities) scenarios.push(await playScenario(server, visibility));
    });
    after(() => server.stop());

    for (const [name, endpoint] of Object.entries(endpoints)) {
      it(`${name} shows each viewer exactly what they may see`, async () => {
        const mistakes: Record<string, { readonly leaked: string[]; readonly missing: string[] }> = {};
        for (const scenario of scenarios) {
          for (const viewer of viewerRoles) {
            const { visibility, clients } = scenario;
            const shownMarks = new Set(marksIn(await endpoint.read(clients[viewer], scenario)));
            const expected = new Set(endpoint.expected({ viewer, visibility }));
            const leaked = [...shownMarks.difference(expected)].sort();
            const missing = [...expected.difference(shownMarks)].sort();
            if (leaked.length + missing.length > 0)
              mistakes[`${visibility}, ${viewer}`] = { leaked, missing };
          }
        }
        assert.deepEqual(mistakes, {});
      });
    }
  });
}

/** Operations that read, but return nothing of rooms, by the kind of data that they return. */
const operationsWithoutRoomData: Readonly<Record<string, readonly string[]>> = {
  'data of the requester': [
    'getAccount3PIDs',
    'getDevice',
    'getDevices',
    'getFilter',
    'getPushRule',
    'getPushRuleActions',
    'getPushRules',
    'getPushRulesGlobal',
    'getPushers',
    'getRoomKeyBySessionId',
    'getRoomKeys',
    'getRoomKeysByRoomId',
    'getRoomKeysVersion',
    'getRoomKeysVersionCurrent',
    'getTokenOwner',
    'getTurnServer',
    'isPushRuleEnabled',
  ],
  'data of the server': [
    'checkUsernameAvailability',
    'getAuthMetadata',
    'getCapabilities',
    'getConfig',
    'getConfigAuthed',
    'getLoginFlows',
    'getProtocolMetadata',
    'getProtocols',
    'getVersions',
    'getWellknown',
    'getWellknownPolicy',
    'getWellknownSupport',
    'redirectToIdP',
    'redirectToSSO',
    'registrationTokenValidity',
  ],
  'data that any user may read by its id': [
    'getContent',
    'getContentAuthed',
    'getContentOverrideName',
    'getContentOverrideNameAuthed',
    'getContentThumbnail',
    'getContentThumbnailAuthed',
    'getProfileField',
    'getRoomIdByAlias',
    'getRoomVisibilityOnDirectory',
    'getUrlPreview',
    'getUrlPreviewAuthed',
    'queryLocationByAlias',
    'queryLocationByProtocol',
    'queryUserByID',
    'queryUserByProtocol',
  ],
  // The tests in src/e2ee/device-lists check which users are listed.
  'device list changes': ['getKeysChanges'],
  'data for administrators': ['getAdminLockUser', 'getAdminSuspendUser', 'getWhoIs'],
};

it('the read access tests cover every GET operation of the client-server API', () => {
  const readOperations = operations().filter(
    ({ api, method }) => api === 'client-server' && method === 'GET',
  );
  const listed = new Set([...Object.keys(endpoints), ...Object.values(operationsWithoutRoomData).flat()]);
  assert.deepEqual(
    readOperations.map(({ operationId }) => operationId).filter((id) => !listed.has(id)),
    [],
  );
});
