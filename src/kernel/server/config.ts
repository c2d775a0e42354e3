import { boolean, freeObject, httpUrl, nullable, option, section, serverName } from '../config/index.ts';

/** Options for the name and the addresses of this server. */
export const serverSection = section({
  title: 'Server',
  description: 'The name of this server, and how clients and other servers find it.',
  options: {
    server_name: option(serverName(), {
      description:
        'The name of this homeserver: the part after the colon in every user id and room alias. It is in lowercase, may end in a port, and cannot be changed once the server has been started.',
      required: true,
    }),
    public_baseurl: option(nullable(httpUrl()), {
      description:
        'The URL at which clients reach this server from outside, without any API path. Behind a reverse proxy this is the URL of the proxy. When it is null, the HTTPS URL of the server name on the default port is used.',
      default: null,
    }),
    serve_server_wellknown: option(boolean(), {
      description:
        'Answers `/.well-known/proto/server` so that other servers connect to port 443 of this name instead of port 8448.',
      default: false,
    }),
    extra_well_known_client_content: option(freeObject(), {
      description:
        'Further fields of the response of `/.well-known/proto/client`. That path is served only when `public_baseurl` is set.',
      default: {},
      since: '1.62.0',
    }),
    web_client_location: option(nullable(httpUrl()), {
      description:
        'The URL to which a browser that opens `/` is redirected. When it is null, a small welcome page is shown.',
      default: null,
    }),
  },
  rules: [
    ({ extra_well_known_client_content, public_baseurl }, view) => {
      if (Object.keys(extra_well_known_client_content).length > 0 && public_baseurl === null) {
        view.warn(
          'extra_well_known_client_content',
          'has no effect without public_baseurl: the path it adds to is not served',
        );
      }
    },
  ],
});
