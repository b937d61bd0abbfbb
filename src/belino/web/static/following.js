// The conversations whose every event this page gets: the open one, and those left while they were being answered.
// The others are covered by an overview, at most once a second.
const MOST = 32;

export class Following {
  #socket;
  #isBusy;
  #followed = [];

  constructor(socket, isBusy) {
    this.#socket = socket;
    this.#isBusy = isBusy;
  }

  has(conversation) {
    return this.#followed.includes(conversation);
  }

  // Without a connection nothing is missed: the next hello subscribes again.
  async add(conversation) {
    const left = this.#followed.filter((one) => one !== conversation && this.#isBusy(one));
    this.#followed = [conversation, ...left].slice(0, MOST);
    await this.#socket.request("chat.follow", { conversations: this.#followed }).catch(() => {});
  }
}
