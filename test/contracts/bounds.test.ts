import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Route } from '../../src/kernel/http/index.ts';
import { withBounds } from '../../src/kernel/http/requests/schema-bounds.ts';
import { pathsOf } from '../../src/kernel/http/routing/route.ts';
import type { ContractSchema } from '../support/inputs/contract-schema.ts';
import {
  type Delegation,
  type OptionalFeatures,
  openDelegation,
  openOptionalFeatures,
} from '../support/servers/optional-features.ts';
import { startTestServer, type TestServer } from '../support/servers/server.ts';

/** Fields whose content the contracts leave open, and the bound of the work that each of them causes. */
const openFields: readonly (readonly [where: RegExp, bound: string])[] = [
  [/\.auth$/, 'interactive authentication keeps known fields only; 64 KiB'],
  [
    /\/send\/.* body$|\/state\/.* body$|\.content$|creation_content$|power_level_content_override$/,
    'the content of an event: 64 KiB',
  ],
  [/third_party_signed$/, 'a part of the content of an event: 64 KiB'],
  [/account_data\/:type body$/, 'account data is stored as it is; 1 MiB, and 10 MiB of a user'],
  [/\/filter body$|room_events\.filter$/, 'the schema of filters, which has bounds'],
  [/pushrules\/.* body$/, 'push rules have a maximum number and size'],
  [/pushers\/set body\.data$/, 'stored as it is; 16 KiB'],
  [
    /keys\/upload body|dehydrated_device body\./,
    'at most 1,000 one-time keys and 20 fallback keys; device keys are an object of bounded size',
  ],
  [/keys\/device_signing\/upload body\.\w+_key$/, 'a signing key has one key and bounded bytes'],
  [/keys\/signatures\/upload body$/, 'bounded in the handler'],
  [/room_keys\//, 'backed up keys are stored as they are; bounded in the handler'],
  [/sendToDevice\/.* body\.messages$/, 'at most 5,000 devices'],
  [/openid\/request_token body$/, 'not read'],
  [/profile\/:userId\/:keyName body\.\*$/, 'a profile has at most 64 KiB'],
  [/register body\.initial_device_display_name$/, 'checked as the name of a device'],
  [/receipt\/:receiptType\/:eventId body\.thread_id$/, 'checked as the id of a thread'],
  [/onbind body\.invites\[\]$/, 'each is parsed as an invite'],
  [/oauth2\/registration body$/, 'the metadata of a client is checked; 32 KiB'],
  [/invite_room_state\[\]$/, 'each is parsed as an event'],
  [
    /^PUT \/_proto\/federation\/v[12]\/(send_join|send_leave|send_knock|invite|exchange_third_party_invite)\/.* body(\.event)?$/,
    'an event: 64 KiB',
  ],
  [/^PUT \/_proto\/federation\/v1\/send\/:txnId body$/, 'at most 50 events and 100 EDUs'],
];

/** A path of each feature that is off by default and adds routes. */
const pathsOfFeatures: readonly string[] = [
  '/_proto/client/v3/login/sso/redirect/:idpId',
  '/_server/client/pick_username/account_details',
  '/_server/client/oidc/backchannel_logout',
  '/_server/client/saml2/authn_response',
  '/_proto/client/v3/login/cas/ticket',
  '/_server/client/sso/confirm/:idpId',
  '/_server/client/oauth2/sign_in/:provider',
  '/_server/client/oauth2/token',
  '/_server/mas/sync_devices',
  '/_proto/consent',
  '/_proto/client/v1/delayed_events/:delayId/:action',
  '/_server/client/resource/*',
  '/_proto/client/v1/appservice/:appserviceId/ping',
  '/_proto/client/v3/thirdparty/location/:protocol',
  '/_proto/client/v1/login/get_token',
  '/_proto/client/v1/media/preview_url',
  '/_server/client/v1/config/federation_whitelist',
  '/_server/admin/v1/send_server_notice',
];

describe('contracts of routes', () => {
  let server: TestServer;
  /** A server whose users an authentication service logs in: it has routes that `server` does not have. */
  let delegating: TestServer;
  let features: OptionalFeatures;
  let delegation: Delegation;
  let routes: readonly Route[];
  before(async () => {
    features = await openOptionalFeatures('https://test/');
    server = await startTestServer({ database: 'sqlite', config: features.config });
    delegation = await openDelegation('https://test/');
    delegating = await startTestServer({ database: 'sqlite', config: delegation.config });
    routes = [...server.homeserver.routes, ...delegating.homeserver.routes];
  });
  after(async () => {
    await delegating.stop();
    await delegation.stop();
    await server.stop();
    await features.stop();
  });

  it('contracts of routes of all features that are off by default are checked', () => {
    const paths = new Set(routes.flatMap(pathsOf));
    const missing = pathsOfFeatures.filter((path) => !paths.has(path));
    assert.deepEqual(missing, []);
  });

  it('contracts of routes bound each list, map and string that a request contains', () => {
    const unbounded: string[] = [];
    const used = new Set<RegExp>();
    const isOpen = (where: string) => {
      const matching = openFields.filter(([pattern]) => pattern.test(where));
      for (const [pattern] of matching) used.add(pattern);
      return matching.length > 0;
    };
    let schemaCount = 0;
    const checkSchema = (schema: ContractSchema, where: string): void => {
      schemaCount++;
      const { type, properties = {}, patternProperties, additionalProperties, items } = schema;
      const isMap = patternProperties !== undefined || isSchema(additionalProperties);
      const isFixed = schema.const !== undefined || schema.enum !== undefined;
      if (type === 'string' && schema.maxLength === undefined && !isFixed) unbounded.push(`${where}: string`);
      else if (type === 'array' && schema.maxItems === undefined && !Array.isArray(items)) {
        unbounded.push(`${where}: list`);
      } else if (isMap && schema.maxProperties === undefined) unbounded.push(`${where}: map`);
      else if (type === 'object' && !isMap && Object.keys(properties).length === 0 && !isOpen(where)) {
        unbounded.push(`${where}: open object`);
      } else if (isUnknown(schema) && !isOpen(where)) unbounded.push(`${where}: any value`);
      for (const [name, inner] of Object.entries(properties)) checkSchema(inner, `${where}.${name}`);
      for (const inner of Object.values(patternProperties ?? {})) checkSchema(inner, `${where}.*`);
      if (isSchema(additionalProperties)) checkSchema(additionalProperties, `${where}.*`);
      for (const inner of [items ?? []].flat()) checkSchema(inner as ContractSchema, `${where}[]`);
      for (const inner of [schema.anyOf, schema.allOf, schema.oneOf].flatMap((some) => some ?? []))
        checkSchema(inner, where);
    };
    for (const { contract } of routes) {
      const hasStream = contract.bodyMode === 'stream';
      const name = `${contract.method} ${typeof contract.path === 'string' ? contract.path : contract.path[0]}`;
      if (contract.body) checkSchema(withBounds(contract.body) as ContractSchema, `${name} body`);
      if (hasStream && contract.bodyLimit === undefined) unbounded.push(`${name} body: stream`);
      if (contract.query) checkSchema(withBounds(contract.query) as ContractSchema, `${name} query`);
    }
    assert.deepEqual(unbounded, []);
    assert.ok(
      routes.length > 200 && schemaCount > 400,
      `${routes.length} routes with ${schemaCount} schemas`,
    );
    assert.deepEqual(
      openFields.filter(([pattern]) => !used.has(pattern)).map(([pattern]) => pattern),
      [],
      'patterns that fit no route',
    );
  });

  it('a request for the profile of a user id of 20,000 characters is answered with 404', async () => {
    const response = await fetch(`${server.baseUrl}/_matrix/client/v3/profile/@${'x'.repeat(20_000)}:test`);
    assert.equal(response.status, 404);
  });

  it('contracts of routes reject bodies whose lists, maps, strings or integers exceed their bounds', async () => {
    const { token } = await server.register('alice');
    const sendRequest = (method: string, path: string, body: unknown) =>
      server.api(method, `/_matrix/client/v3${path}`, { token, body: body as never });
    const many = (count: number) => Array.from({ length: count }, (_, index) => `@user${index}:test`);
    const entries = (count: number, value: unknown) =>
      Object.fromEntries(many(count).map((id) => [id, value]));
    for (const [method, path, body] of [
      ['POST', '/createRoom', { invite: many(9_000) }],
      ['POST', '/createRoom', { initial_state: Array(9_000).fill({ type: 'a.b', content: {} }) }],
      ['POST', '/createRoom', { room_alias_name: 'x'.repeat(70_000) }],
      ['POST', '/keys/query', { device_keys: entries(6_000, []) }],
      ['POST', '/keys/query', { device_keys: { '@a:test': Array(2_000).fill('A') } }],
      ['POST', '/keys/claim', { one_time_keys: { '@a:test': entries(2_000, 'signed_curve25519') } }],
      ['PUT', '/rooms/!a:test/typing/@alice:test', { typing: true, timeout: 1e300 }],
      ['POST', '/search', { search_categories: { room_events: { search_term: 'x'.repeat(300_000) } } }],
      ['POST', '/user_directory/search', { search_term: 'x'.repeat(300_000) }],
    ] as const) {
      const answer = await sendRequest(method, path, body);
      assert.deepEqual([answer.status, answer.body['errcode']], [400, 'M_BAD_JSON'], path);
    }
    const messages = { '@alice:test': entries(190_000, {}) };
    const sent = await sendRequest('PUT', '/sendToDevice/m.test/1', { messages });
    assert.deepEqual([sent.status, sent.body['errcode']], [413, 'M_TOO_LARGE']);
  });
});

const isSchema = (value: unknown): value is ContractSchema =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isUnknown = ({ type, anyOf, allOf, oneOf, const: value, enum: values }: ContractSchema) =>
  [type, anyOf, allOf, oneOf, value, values].every((keyword) => keyword === undefined);
