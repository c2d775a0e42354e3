/** Paths of the endpoints for clients, as routes declare them: with `/_server` for `/_synapse`. */
export const clientPaths = {
  registration: '/_server/client/oauth2/registration',
  token: '/_server/client/oauth2/token',
  revocation: '/_server/client/oauth2/revoke',
  deviceAuthorization: '/_server/client/oauth2/device',
} as const;

/** Paths of the pages for users, as routes declare them: with `/_server` for `/_synapse`. */
export const pagePaths = {
  authorization: '/_server/client/oauth2/authorize',
  signIn: '/_server/client/oauth2/sign_in',
  signOut: '/_server/client/oauth2/sign_out',
  link: '/_server/client/oauth2/link',
  account: '/_server/client/account',
} as const;

/** The URLs of the authorization server. */
export class Endpoints {
  /** The issuer identifier (RFC 8414). Ends with a slash. */
  readonly issuer: string;

  /** @param publicBaseUrl URL where clients reach this server; null means `https://` followed by the server name */
  constructor(publicBaseUrl: string | null, serverName: string) {
    this.issuer = (publicBaseUrl ?? `https://${serverName}`).replace(/\/*$/, '/');
  }

  /** Returns the public URL of a path, with `/_synapse` in place of `/_server`. */
  url(path: string): string {
    return this.issuer + path.replace(/^\/_server\//, '_synapse/').replace(/^\//, '');
  }
}
