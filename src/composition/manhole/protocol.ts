import type { Socket } from 'node:net';
import type { Clock } from '../../kernel/clock.ts';

/** Milliseconds to wait for a client's first bytes: SSH clients send them at once, telnet clients do not. */
const maxWait = 300;

/** The first bytes that SSH clients send. Source: RFC 4253, section 4.2. */
const sshGreeting = 'SSH-';

/** Returns the protocol of a client, from the first bytes that it sends. The bytes stay unread. */
export function protocolOf(socket: Socket, clock: Clock): Promise<'ssh' | 'telnet'> {
  return new Promise((resolve) => {
    const decide = () => {
      timer.cancel();
      socket.off('readable', decide);
      const first: Buffer | null = socket.read();
      if (first) socket.unshift(first);
      resolve(first?.toString('latin1').startsWith(sshGreeting) ? 'ssh' : 'telnet');
    };
    const timer = clock.setTimer(maxWait, decide);
    socket.once('readable', decide);
  });
}
