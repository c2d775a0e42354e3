import { close, createReadStream, fstat, open, read } from 'node:fs';
import type { ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';

/** Bytes that are read at once. */
const pieceLength = 256 * 1024;

/** Maximum number of buffers that are kept for the next files. */
const maxSpareBuffers = 8;

const spareBuffers: Buffer[] = [];

/**
 * An open file as the body of a response. Sending it uses one buffer for all pieces, so that files of any size cost no
 * new memory. It must be sent, streamed or closed.
 */
export class OpenFile {
  /** Bytes. */
  readonly size: number;
  readonly #fd: number;
  #isOpen = true;

  private constructor(fd: number, size: number) {
    this.#fd = fd;
    this.size = size;
  }

  /** Opens a file for reading. @throws the error of the operating system */
  static open(path: string): Promise<OpenFile> {
    return new Promise((resolve, reject) => {
      open(path, 'r', (error, fd) => {
        if (error) return reject(error);
        fstat(fd, (failure, found) => {
          if (failure) close(fd, () => reject(failure));
          else resolve(new OpenFile(fd, found.size));
        });
      });
    });
  }

  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    close(this.#fd, () => undefined);
  }

  /** Streams the file, and closes it at the end. */
  stream(): Readable {
    this.#isOpen = false;
    return createReadStream('', { fd: this.#fd, start: 0, highWaterMark: pieceLength });
  }

  /**
   * Sends a part of the file as the body of a response, and closes the file. The head of the response must be written
   * before. Resolves also when the client disconnects.
   * @throws Error when the file cannot be read, or ends before the end of the part; the response is then incomplete
   */
  send(response: ServerResponse, start: number, length: number): Promise<void> {
    if (response.req.method === 'HEAD') {
      this.close();
      response.end();
      return Promise.resolve();
    }
    return new Promise((resolve, reject) => {
      const buffer = spareBuffers.pop() ?? Buffer.allocUnsafeSlow(pieceLength);
      let position = start;
      let left = length;
      let isBufferInUse = false;
      let isDone = false;
      const finish = (error?: Error) => {
        if (isDone) return;
        isDone = true;
        response.off('close', onClose);
        // Does not reuse a buffer that the operating system still reads from or writes to.
        if (!isBufferInUse && spareBuffers.length < maxSpareBuffers) spareBuffers.push(buffer);
        if (error) reject(error);
        else resolve();
      };
      const onClose = () => {
        // A read that is under way closes the file when it ends.
        if (!isReading) this.close();
        finish();
      };
      let isReading = false;
      const step = (): void => {
        if (left === 0) {
          this.close();
          response.end();
          finish();
          return;
        }
        isBufferInUse = true;
        isReading = true;
        read(this.#fd, buffer, 0, Math.min(pieceLength, left), position, (error, count) => {
          isReading = false;
          if (isDone) return this.close();
          if (error || count === 0) {
            this.close();
            return finish(error ?? new Error('The file is shorter than it was'));
          }
          position += count;
          left -= count;
          response.write(buffer.subarray(0, count), (failure) => {
            isBufferInUse = false;
            if (isDone) return;
            if (failure) onClose();
            else step();
          });
        });
      };
      response.once('close', onClose);
      step();
    });
  }
}

/** A part of an open file, as the body of a reply. */
export class FilePart {
  readonly file: OpenFile;
  readonly start: number;
  readonly length: number;

  constructor(file: OpenFile, start: number, length: number) {
    this.file = file;
    this.start = start;
    this.length = length;
  }
}
