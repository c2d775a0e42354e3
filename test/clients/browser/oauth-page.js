/**
 * A small web client that logs in by OAuth 2.0 with the code of the SDK. It is plain JavaScript, because this project's
 * TypeScript configuration has no browser types.
 */
import { createClient, OAuth2 } from 'matrix-js-sdk';

const redirectUri = `${location.origin}/back`;

/** Begins a login at a server, and leaves the page. */
window.begin = async (server) => {
  const metadata = await createClient({ baseUrl: server }).getAuthMetadata();
  const clientId = await OAuth2.registerClient(metadata, {
    client_name: 'Browser test',
    client_uri: 'https://app.example/',
    policy_uri: 'https://app.example/privacy',
    redirect_uris: ['http://127.0.0.1/back'],
    application_type: 'native',
  });
  const login = new OAuth2(metadata, { clientId });
  sessionStorage.setItem('login', JSON.stringify({ server, context: login.context }));
  location.href = await login.generateAuthorizationCodeGrantUrl('the state', redirectUri);
};

/** Completes the login after the browser has returned to the client, then refreshes and revokes the access token. */
window.complete = async () => {
  const { server, context } = JSON.parse(sessionStorage.getItem('login'));
  const answer = new URLSearchParams(location.hash.slice(1));
  const metadata = await createClient({ baseUrl: server }).getAuthMetadata();
  const login = new OAuth2(metadata, context);
  const tokens = await login.completeAuthorizationCodeGrant(answer.get('code'), redirectUri);
  const whoami = (accessToken) => createClient({ baseUrl: server, accessToken }).whoami();
  const whoamiAfterLogin = await whoami(tokens.access_token);
  const renewed = await login.performRefreshTokenGrant(tokens.refresh_token);
  const whoamiAfterRefresh = await whoami(renewed.access_token);
  await login.revokeToken(renewed.access_token, 'access_token');
  const errcodeAfterRevocation = await whoami(renewed.access_token).catch(({ errcode }) => errcode);
  const state = answer.get('state');
  return { state, deviceId: context.deviceId, whoamiAfterLogin, whoamiAfterRefresh, errcodeAfterRevocation };
};
