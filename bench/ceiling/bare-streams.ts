import { randomUUID } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { FastifyInstance, FastifyRequest } from 'fastify';

/**
 * Adds uploads and downloads to the ceiling. An upload is a stream from the request to a file that is flushed, a download
 * a stream from the file to the response.
 */
export function addBareStreams(app: FastifyInstance): void {
  const pathOf = (id: string) => join(tmpdir(), `hearth-ceiling-${process.pid}-${id}`);
  app.addContentTypeParser('application/octet-stream', (_request, _body, done) => done(null));
  app.post('/_matrix/media/v3/upload', async (request: FastifyRequest) => {
    const id = randomUUID();
    await pipeline(request.raw, createWriteStream(pathOf(id), { flush: true }));
    return { content_uri: `mxc://ceiling/${id}` };
  });
  app.get<{ Params: { id: string } }>(
    '/_matrix/client/v1/media/download/:server/:id',
    async ({ params }, reply) => {
      const path = pathOf(params.id);
      const { size } = await stat(path);
      return reply
        .header('content-length', size)
        .type('application/octet-stream')
        .send(createReadStream(path, { highWaterMark: 256 * 1024 }));
    },
  );
}
