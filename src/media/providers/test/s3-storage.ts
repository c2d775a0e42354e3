import { readFileSync } from 'node:fs';
import { createServer, request as proxied, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import S3rver from 's3rver';
import { filesBelow, unlessDeleted } from '../../../../test/support/files/stored-files.ts';
import { plainCaches } from '../../../../test/support/servers/caches.ts';
import { systemClock } from '../../../kernel/clock.ts';
import { OutboundHttp } from '../../../kernel/outbound/index.ts';

/** Starts S3-compatible storage behind a proxy that can fail in several ways. */
export async function startS3(directory: string) {
  const s3 = new S3rver({
    address: '127.0.0.1',
    port: 0,
    silent: true,
    directory,
    configureBuckets: [{ name: 'media', configs: [] }],
  });
  const { port } = (await s3.run()) as AddressInfo;
  let replacement: ((response: ServerResponse) => void) | undefined;
  const proxy: Server = createServer((request, response) => {
    if (replacement !== undefined) {
      request.resume();
      return replacement(response);
    }
    const { method, url, headers } = request;
    const forwardedRequest = proxied(
      { port, host: '127.0.0.1', method, path: url, headers },
      (s3Response) => {
        response.writeHead(s3Response.statusCode ?? 500, s3Response.headers);
        s3Response.pipe(response);
      },
    );
    forwardedRequest.on('error', () => response.destroy());
    request.pipe(forwardedRequest);
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    /** Replaces the responses of the storage; with `undefined` requests are passed on to it. */
    answerWith(newReplacement: typeof replacement) {
      replacement = newReplacement;
    },
    /** Contents of all objects. */
    objects: () => textsIn(directory, '._S3rver_object'),
    async stop() {
      proxy.closeAllConnections();
      await new Promise((resolve) => proxy.close(resolve));
      await s3.close();
    },
  };
}

/** Returns the texts of the files below a directory whose paths end with `ending`. */
export const textsIn = (directory: string, ending = ''): string[] =>
  filesBelow(directory)
    .filter((path) => path.endsWith(ending))
    .flatMap((path) => unlessDeleted(() => [readFileSync(path, 'latin1')], []));

/** Returns an HTTP client that may request any address. */
export const outboundHttp = () =>
  new OutboundHttp({
    caches: plainCaches(systemClock),
    clock: systemClock,
    config: {
      http_proxy: null,
      https_proxy: null,
      no_proxy_hosts: [],
      ip_range_blacklist: [],
      ip_range_whitelist: [],
      federation_ip_range_blacklist: null,
      user_agent_suffix: null,
    },
  });
