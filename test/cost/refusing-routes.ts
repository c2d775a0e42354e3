/** A route that carries out no request of these tests. */
interface RefusingRoute {
  /** Matches the name of the route. */
  readonly route: RegExp;
  /** All answers that it may give, as `readAnswer` describes them, besides those to requests that are too large. */
  readonly answers: readonly string[];
  readonly reason: string;
}

/** Routes that carry out no request of these tests, because they need something that the tests do not have. */
export const refusingRoutes: readonly RefusingRoute[] = [
  {
    route:
      /^(POST|DELETE) \/_proto\/.*\/(account\/password|account\/deactivate|account\/3pid|account\/3pid\/add|v3\/delete_devices|v3\/devices\/:deviceId|get_token)$/,
    answers: ['401 flows'],
    reason: 'needs interactive authentication, which these tests do not complete',
  },
  {
    route: /\/account\/3pid\/bind$/,
    answers: ['502 M_UNKNOWN'],
    reason: 'needs an identity server',
  },
  {
    route: /\/preview_url$/,
    answers: ['502 M_UNKNOWN'],
    reason: 'needs a web page',
  },
  {
    route: /add_threepid\/msisdn\/submit_token$/,
    answers: ['400 M_THREEPID_AUTH_FAILED'],
    reason: 'needs a token that is sent to a phone',
  },
  {
    route: /^(GET|POST) .*\/email\/submit_token$|\/_server\/client\/unsubscribe$/,
    answers: ['403 page'],
    reason: 'needs a link that is sent in a mail',
  },
  {
    route: /^POST \/_server\/admin\/v1\/register$/,
    answers: ['400 M_UNKNOWN'],
    reason: 'needs a nonce, which is valid once',
  },
  {
    route: /\/v3\/refresh$/,
    answers: ['401 M_UNKNOWN_TOKEN'],
    reason: 'needs a refresh token, which is valid once',
  },
  {
    route: /\/client\/oauth2\/token$/,
    answers: ['400 invalid_grant', '400 invalid_request', '401 invalid_client'],
    reason: 'needs a code or a refresh token, which are valid once',
  },
  {
    route: /\/openid\/userinfo$/,
    answers: ['401 M_MISSING_TOKEN', '401 M_UNKNOWN_TOKEN'],
    reason: 'needs an OpenID token',
  },
  {
    route:
      /\/client\/(pick_username\/\w+|new_user_consent|oidc\/callback|saml2\/authn_response|sso\/confirm\/:idpId|r0\/login\/cas\/ticket)$/,
    answers: ['400 M_UNKNOWN', '403 page'],
    reason:
      'needs a login at an identity provider that the browser has begun, or a signed response of the provider',
  },
  {
    route: /\/oidc\/backchannel_logout$/,
    answers: ['400 invalid_request'],
    reason: 'needs a token that an identity provider has signed',
  },
  {
    route:
      /\/oauth2\/authorize$|^POST .*\/(oauth2\/sign_in|static\/client\/login\/)$|^GET .*\/oauth2\/sign_in\/:provider$/,
    answers: ['403 page'],
    reason: 'needs the form or the cookie of a page',
  },
  {
    route: /\/(auth\/:stage\/fallback\/web|client\/register\/continue|client\/password_reset\/continue)$/,
    answers: ['401 page', '403 page', '404 page'],
    reason: 'needs a session of interactive authentication',
  },
  {
    route: /\/dehydrated_device(\/:deviceId\/events)?$/,
    answers: ['403 M_FORBIDDEN', '404 M_NOT_FOUND'],
    reason: 'needs a dehydrated device, whose keys are signed',
  },
  {
    route: /\/keys\/signatures\/upload$/,
    answers: ['200'],
    reason: 'needs keys that the user has signed, and answers 200 with a failure for each other key',
  },
  {
    route: /\/rendezvous\/:id$/,
    answers: ['400 M_MISSING_PARAM', '404 M_NOT_FOUND'],
    reason: 'needs a session of two devices',
  },
  {
    route: /\/knock\/:roomIdOrAlias$|\/make_knock\//,
    answers: ['403 M_FORBIDDEN', '400 M_INCOMPATIBLE_ROOM_VERSION'],
    reason: 'needs a room whose join rule allows knocks',
  },
  {
    route:
      /^PUT \/_proto\/federation\/v[12]\/(send_join|send_leave|send_knock|invite)\/|\/exchange_third_party_invite\//,
    answers: ['400 M_INCOMPATIBLE_ROOM_VERSION'],
    reason: 'needs an event that another server has signed',
  },
  {
    route: /^GET \/_proto\/federation\/v1\/query\/:queryType$/,
    answers: ['400 M_MISSING_PARAM'],
    reason: 'a query of an unknown type, or without the parameters of the known one',
  },
  {
    route: /^GET \/_proto\/client\/v3\/pushrules\/\*$/,
    answers: ['400 M_UNRECOGNIZED'],
    reason: 'names a kind of push rules that does not exist',
  },
  {
    route: /^GET \/\.well-known\/proto\/(support|server)$/,
    answers: ['404 M_NOT_FOUND'],
    reason: 'needs options that these tests do not give',
  },
  {
    route: /^GET .*\/(static|admin\/ui)\/\*$/,
    answers: ['404 M_NOT_FOUND', '404 page'],
    reason: 'needs the name of a file',
  },
  {
    route:
      /^GET .*\/(thread\/:rootId\/subscription|:noticeId|:reportId|users\/:address|users\/:externalId|:redactId|:purgeId|delete_status|:deleteId)$/,
    answers: ['404 M_NOT_FOUND'],
    reason: 'needs a report, a task or another thing that these tests do not make',
  },
];
