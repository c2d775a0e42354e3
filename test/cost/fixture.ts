import type { RouteContract } from '../../src/kernel/http/index.ts';
import { testImage } from '../support/inputs/images.ts';
import { ScriptedMember } from '../support/other-servers/scripted-member.ts';
import type { ScriptedServer } from '../support/other-servers/scripted-server.ts';
import { type FederatedServer, SeveralServers } from '../support/other-servers/several-servers.ts';
import { openDelegation, openOptionalFeatures } from '../support/servers/optional-features.ts';
import { registerAdmin } from '../support/users/register-admin.ts';
import { enc, TestClient } from '../support/users/test-client.ts';
import type { Subjects } from './accepted-values.ts';

/** The servers that receive requests, and what the requests are about. */
export interface Fixture {
  readonly server: FederatedServer;
  /** A server whose users an authentication service logs in. */
  readonly delegating: FederatedServer;
  readonly user: TestClient;
  /** A server in the room, which sends the requests of other servers. */
  readonly remoteServer: ScriptedServer;
  readonly subjects: Subjects;
  /** Returns values for the parameters in the path of a route, by name. Each call returns another transaction id. */
  pathParametersOf(contract: RouteContract): Readonly<Record<string, string>>;
  /** An administrator of `server`. */
  readonly administrator: TestClient;
  /** Returns the access token of the client that sends the requests of a route. */
  tokenOf(contract: RouteContract): string;
  stop(): Promise<void>;
}

/** Starts a server with all features, a server with delegated authentication, and a server of another operator. */
export async function openFixture(): Promise<Fixture> {
  const publicUrl = 'https://a.test/';
  const features = await openOptionalFeatures(publicUrl);
  const delegation = await openDelegation('https://delegating.test/');
  const several = new SeveralServers('sqlite');
  const server = await several.homeserver('a.test', { config: { ...features.config, ...withoutTls } });
  const delegating = await several.homeserver('delegating.test', {
    config: { ...delegation.config, ...withoutTls },
  });
  await provision(delegating, delegation.secret);
  const alice = await server.register('alice');
  const user = new TestClient(server, alice);
  const remoteServer = await several.scripted('other.test');
  const { roomId, eventId } = await openRoom(user, remoteServer);
  const administrator = await registerAdmin(server);
  const pathParameters = {
    ...fixedParameters,
    roomId,
    roomIdOrAlias: roomId,
    eventId,
    rootId: eventId,
    deviceId: alice.deviceId,
    ...(await createSubjects(server, user, roomId)),
    token: await registrationToken(administrator),
  };
  const targetParameters = { ...pathParameters, ...(await openTarget(server)) };
  const byOperation = await parametersByOperation(server, user, roomId);
  let count = 0;
  return {
    server,
    delegating,
    user,
    remoteServer,
    administrator,
    tokenOf({ auth, operationId, path }) {
      if (String(path).startsWith('/_server/mas/')) return delegation.secret;
      if (auth === 'admin') return administrator.token;
      if (auth === 'appservice') return features.bridge.token;
      // A new version would end the backup that the other requests use.
      return operationId === 'postRoomKeysVersion' ? administrator.token : user.token;
    },
    subjects: {
      roomId,
      eventId,
      userId: user.id,
      otherUserId: targetParameters.userId,
      since: (await user.sync()).next_batch,
      backupVersion: pathParameters.version,
      clientId: await oauthClient(server),
    },
    pathParametersOf: ({ auth, operationId = '' }) => ({
      ...(auth === 'admin' ? targetParameters : pathParameters),
      ...byOperation[operationId],
      txnId: `txn${count++}`,
      ...(operationId === 'setRoomAlias' && { roomAlias: `#alias${count}:a.test` }),
    }),
    async stop() {
      await several.stop();
      await features.stop();
      await delegation.stop();
    },
  };
}

/** Requests are sent without TLS, because encryption costs the sender as much as the server. */
const withoutTls = {
  http: {
    listeners: [false, true].map((tls) => ({
      port: 0,
      type: 'http',
      bind_addresses: ['127.0.0.1'],
      tls,
      resources: [{ names: ['client', 'consent', 'federation', 'metrics'] }],
    })),
  } as never,
};

const fixedParameters = {
  serverName: 'a.test',
  destination: 'other.test',
  receiptType: 'm.read',
  kind: 'override',
  ruleId: 'rule',
  eventType: 'm.test',
  type: 'm.test',
  tag: 'u.test',
  keyName: 'displayname',
  relType: 'm.thread',
  scope: 'global',
  queryType: 'profile',
  roomAlias: '#alias:a.test',
  appserviceId: 'irc',
  protocol: 'irc',
  networkId: 'irc',
  idpId: 'cas',
  action: 'restart',
  stateKey: 'key',
};

/** Opens a room with 200 messages, an alias and a user of the other server. */
async function openRoom(user: TestClient, remoteServer: ScriptedServer) {
  const roomId = await user.createRoom({
    preset: 'public_chat',
    room_version: '11',
    room_alias_name: 'alias',
  });
  const member = await ScriptedMember.join(remoteServer, 'a.test', roomId, '@guest:other.test');
  await member.say('its key is known');
  const eventId = await user.say(roomId, 'first');
  for (let batch = 0; batch < 20; batch++) {
    await Promise.all(Array.from({ length: 10 }, (_, index) => user.say(roomId, `${batch} ${index}`)));
  }
  return { roomId, eventId };
}

/** Creates the data, delayed event, key backup, filter and image of the user's requests. @returns path parameters */
async function createSubjects(server: FederatedServer, user: TestClient, roomId: string) {
  await storeData(user, roomId);
  return {
    userId: user.id,
    delayId: await delayedEvent(user, roomId),
    version: await keyBackup(user),
    filterId: String((await user.do('POST', `/user/${enc(user.id)}/filter`, {}))['filter_id']),
    mediaId: await upload(server, user),
  };
}

/** Creates a registration token. @returns the token */
async function registrationToken(administrator: TestClient): Promise<string> {
  const token = 'registration-token';
  await administrator.request('POST', '/_synapse/admin/v1/registration_tokens/new', { token });
  return token;
}

/** Registers the user whom the requests of administrators concern. @returns path parameters of the user and a room */
async function openTarget(server: FederatedServer) {
  const { userId, deviceId, token } = await server.register('target');
  const target = new TestClient(server, { userId, deviceId, token });
  const roomId = await target.createRoom();
  return { userId, deviceId, roomId, roomIdOrAlias: roomId, eventId: await target.say(roomId, 'first') };
}

/**
 * Returns the path parameters that are different for single operations.
 * @param roomId a room that an administrator joins
 */
async function parametersByOperation(
  server: FederatedServer,
  user: TestClient,
  roomId: string,
): Promise<Readonly<Record<string, Readonly<Record<string, string>>>>> {
  const remoteUser = { userId: '@guest:other.test' };
  return {
    upgradeRoom: { roomId: await user.createRoom() },
    updateUserDevice: { deviceId: 'DRIVEN' },
    purgeHistory: { roomId: await user.createRoom() },
    joinUserToRoom: { roomIdOrAlias: roomId },
    deactivateUser: { userId: (await server.register('leaver')).userId },
    makeJoin: remoteUser,
    makeLeave: remoteUser,
    makeKnock: remoteUser,
  };
}

/** Uploads an image. @returns its media id */
async function upload({ baseUrl }: FederatedServer, { token }: TestClient): Promise<string> {
  const response = await fetch(`${baseUrl}/_matrix/media/v3/upload`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'image/png' },
    body: await testImage(2_000, 2_000),
  });
  const { content_uri: uri } = (await response.json()) as { content_uri: string };
  return uri.replace(/.*\//, '');
}

/** Stores the data that requests read: account data, state and a push rule. */
async function storeData(user: TestClient, roomId: string): Promise<void> {
  const { type, kind, ruleId, eventType, stateKey } = fixedParameters;
  await user.do('PUT', `/user/${enc(user.id)}/account_data/${type}`, { stored: true });
  await user.do('PUT', `/user/${enc(user.id)}/rooms/${enc(roomId)}/account_data/${type}`, { stored: true });
  await user.do('PUT', `/pushrules/global/${kind}/${ruleId}`, { actions: ['notify'], conditions: [] });
  for (const key of [stateKey, '']) await user.setState(roomId, eventType, {}, key);
}

/** Schedules a message that is sent in an hour. @returns the delay id */
async function delayedEvent(user: TestClient, roomId: string): Promise<string> {
  const path = `/rooms/${enc(roomId)}/delayed_event/m.room.message/delayed`;
  const body = { delay: 3_600_000, content: { msgtype: 'm.text', body: 'later' } };
  return String((await user.do('PUT', path, body))['delay_id']);
}

/** Creates a key backup. @returns its version */
async function keyBackup(user: TestClient): Promise<string> {
  const algorithm = 'm.megolm_backup.v1.curve25519-aes-sha2';
  const body = { algorithm, auth_data: { public_key: 'x'.repeat(43), signatures: {} } };
  return String((await user.do('POST', '/room_keys/version', body))['version']);
}

/** Registers a client of the authorization server. @returns its id */
async function oauthClient(server: FederatedServer): Promise<string> {
  const body = {
    client_uri: 'https://device.example/',
    grant_types: ['urn:ietf:params:oauth:grant-type:device_code', 'refresh_token'],
    token_endpoint_auth_method: 'none',
  };
  const answer = await server.api('POST', '/_synapse/client/oauth2/registration', { body });
  return String(answer.body['client_id']);
}

/** Creates the user that the requests of the authentication service change. */
async function provision(delegating: FederatedServer, token: string): Promise<void> {
  await delegating.api('POST', '/_synapse/mas/provision_user', { token, body: { localpart: 'target' } });
}
